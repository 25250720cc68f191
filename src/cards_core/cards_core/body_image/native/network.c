/* A multilayer perceptron with two hidden layers of tanh, its derivatives, and a step of Adam; see
   `cards_core.body_image.network`. Behind product.c of `cards_core.codegen`. */
#include <math.h>
#include <string.h>

typedef struct {
  long inputs, hidden, outputs, varied;
  const double *w1, *b1;  /* (inputs, hidden), (hidden) */
  const double *w2, *b2;  /* (hidden, hidden), (hidden) */
  const double *w3, *b3;  /* (hidden, outputs), (outputs) */
  const double *x;        /* (inputs) */
  double *y;              /* (outputs) */
  double *slopes;         /* (outputs, varied): dy/dx of the first inputs */
  double *work;           /* (4, hidden) and (outputs) */
} network_t;

void network_evaluate(const network_t *n) {
  const long h = n->hidden, m = n->outputs;
  double *a = n->work, *b = a + h, *inner = b + h, *outer = inner + h, *last = outer + h;
  memcpy(a, n->b1, h*sizeof *a);
  add_product(n->inputs, h, n->x, n->w1, a);
  for (long i = 0; i < h; i++)
    a[i] = tanh(a[i]);
  memcpy(b, n->b2, h*sizeof *b);
  add_product(h, h, a, n->w2, b);
  for (long i = 0; i < h; i++)
    b[i] = tanh(b[i]);
  memcpy(n->y, n->b3, m*sizeof *n->y);
  add_product(h, m, b, n->w3, n->y);
  for (long i = 0; i < h; i++) {  /* of tanh */
    a[i] = 1.0 - a[i]*a[i];
    b[i] = 1.0 - b[i]*b[i];
  }
  for (long k = 0; k < n->varied; k++) {
    for (long i = 0; i < h; i++)
      inner[i] = a[i]*n->w1[k*h + i];
    memset(outer, 0, h*sizeof *outer);
    add_product(h, h, inner, n->w2, outer);
    for (long i = 0; i < h; i++)
      outer[i] *= b[i];
    memset(last, 0, m*sizeof *last);
    add_product(h, m, outer, n->w3, last);
    for (long j = 0; j < m; j++)
      n->slopes[j*n->varied + k] = last[j];
  }
}

/* means and squares follow the gradient; p -= size mean / (sqrt(square) + 1e-8) */
void network_adam(long count, double size, double first, double second,
                  const double *restrict gradient, double *restrict mean, double *restrict square,
                  double *restrict parameter) {
  for (long i = 0; i < count; i++) {
    const double g = gradient[i];
    mean[i] += first*(g - mean[i]);
    square[i] += second*(g*g - square[i]);
    parameter[i] -= size*mean[i]/(sqrt(square[i]) + 1e-8);
  }
}
