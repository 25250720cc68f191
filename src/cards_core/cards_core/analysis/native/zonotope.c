/* Margin of a set of wrenches in the set that the muscles can make, by hyperplane shifting
   [Bouchard2010] [Ruiz2015]: exact, over all facets.

   The muscles make W = {-S L'f}, a zonotope (plus a cone where tensions have no upper limit). Each
   facet of W is parallel to nv - 1 independent columns of -S L'. For its unit normal c

       margin(c) = h_W(c) - h_R(c),   h(c) = largest c'w over the set.

   Everything h needs is linear in c: so one table, columns [muscles | generators of R | centre of
   W minus centre of R | vertices of R], is multiplied by an orthonormal basis of the directions
   that are perpendicular to the muscles chosen so far. Choosing one more muscle is a reflection
   that drops a row, shared by all subsets that begin alike; the last row is c' times the table. */

#define LANES 8

typedef struct {
  int limited, unlimited, generators, vertices; /* how many columns of each kind */
  int signed_end, unlimited_at, centre, vertex_at, width; /* places of columns, and the row */
  int facets;           /* independent subsets found */
  double dependent;     /* sine below which a muscle counts as dependent on those chosen */
  double *sign;         /* 1 for limited muscles, -1 for generators of R, 0 for padding */
  double *length;       /* norms of the columns */
  double *table;        /* nv levels of nv rows */
  double *shadow;       /* one row */
  double margin;
  int rows0;
} zonotope_t;

static int padded(int count) { return (count + LANES - 1)/LANES*LANES; }

static int selectable(const zonotope_t *z) { return z->limited + z->unlimited; }

/* Column of the i-th muscle. */
static int column_of(const zonotope_t *z, int i) {
  return i < z->limited ? i : z->unlimited_at + i - z->limited;
}

/* Margin in the directions c and -c, where row = c' table. */
static void weigh(zonotope_t *z, const double *row) {
  double sums[LANES] = {0.0};
  for (int i = 0; i < z->signed_end; i += LANES)
    for (int k = 0; k < LANES; ++k) sums[k] += z->sign[i + k]*fabs(row[i + k]);
  double sum = 0.0;
  for (int k = 0; k < LANES; ++k) sum += sums[k];
  int open_plus = 0, open_minus = 0;
  for (int i = 0; i < z->unlimited; ++i) {
    const double p = row[z->unlimited_at + i], size = z->length[z->unlimited_at + i];
    if (p > z->dependent*size) open_plus = 1;
    if (p < -z->dependent*size) open_minus = 1;
  }
  double most = 0.0, least = 0.0;
  if (z->vertices) {
    most = -INFINITY;
    least = INFINITY;
    for (int i = 0; i < z->vertices; ++i) {
      most = fmax(most, row[z->vertex_at + i]);
      least = fmin(least, row[z->vertex_at + i]);
    }
  }
  if (!open_plus) z->margin = fmin(z->margin, sum + row[z->centre] - most);
  if (!open_minus) z->margin = fmin(z->margin, sum - row[z->centre] + least);
}

/* Two rows are left: each further muscle that is not perpendicular to both fixes c. */
static void last_choice(zonotope_t *z, const double *rows, int from) {
  const double *x = rows, *y = rows + z->width;
  for (int i = from; i < selectable(z); ++i) {
    const int at = column_of(z, i);
    const double size = sqrt(x[at]*x[at] + y[at]*y[at]);
    if (size <= z->dependent*z->length[at]) continue;
    const double c = y[at]/size, s = x[at]/size;
    double *row = z->shadow;
    for (int k = 0; k < z->width; k += LANES)
      for (int u = 0; u < LANES; ++u) row[k + u] = c*x[k + u] - s*y[k + u];
    row[at] = 0.0;
    ++z->facets;
    weigh(z, row);
  }
}

static void choose(zonotope_t *z, double *rows, int count, int from) {
  if (count == 1) {
    ++z->facets;
    weigh(z, rows);
    return;
  }
  if (count == 2) {
    last_choice(z, rows, from);
    return;
  }
  const int width = z->width;
  double *next = rows + (size_t)z->rows0*(size_t)width, v[64];
  for (int i = from; i <= selectable(z) - (count - 1); ++i) {
    const int at = column_of(z, i);
    double size = 0.0;
    for (int r = 0; r < count; ++r) {
      v[r] = rows[r*width + at];
      size += v[r]*v[r];
    }
    size = sqrt(size);
    if (size <= z->dependent*z->length[at]) continue;
    /* reflector that moves the column to the last row, which is then left out */
    const double alpha = v[count - 1] > 0.0 ? -size : size;
    v[count - 1] -= alpha;
    const double beta = -1.0/(alpha*v[count - 1]);
    double *sums = z->shadow;
    for (int k = 0; k < width; ++k) sums[k] = beta*v[0]*rows[k];
    for (int r = 1; r < count; ++r) {
      const double f = beta*v[r], *row = rows + r*width;
      for (int k = 0; k < width; ++k) sums[k] += f*row[k];
    }
    for (int r = 0; r < count - 1; ++r) {
      const double f = v[r], *row = rows + r*width;
      double *out = next + r*width;
      for (int k = 0; k < width; ++k) out[k] = row[k] - f*sums[k];
      out[at] = 0.0;
    }
    choose(z, next, count - 1, i + 1);
  }
}

/* Margins of n points. R is load + {sum_k s_k generator_k, |s_k| <= 1} + hull of the vertices.
   Strides are in doubles; 0 where all points share the array. Tensions are lower <= f <= upper,
   upper may be infinite. Limits that are equal add a constant and no direction. 0: out of memory. */
int cards_capacity(long n, int nv, int m, const double *l, long l_stride, const double *lower,
                   const double *upper, const double *load, long load_stride,
                   const double *generators, long generators_stride, int g,
                   const double *vertices, long vertices_stride, int v, const double *scale,
                   double least, double tolerance, double rank_tolerance, double dependent,
                   unsigned char *status, double *margin) {
  zonotope_t z = {0};
  int *place = malloc(sizeof(int)*(size_t)(m + nv));
  if (!place) return 0;
  int *order = place + m;
  for (int i = 0; i < m; ++i) {
    if (upper[i] == INFINITY) ++z.unlimited;
    else if (upper[i] > lower[i]) ++z.limited;
  }
  z.generators = g;
  z.vertices = v;
  z.signed_end = padded(z.limited + g);
  z.unlimited_at = z.signed_end;
  z.centre = z.unlimited_at + z.unlimited;
  z.vertex_at = z.centre + 1;
  z.width = padded(z.vertex_at + v);
  z.rows0 = nv;
  z.dependent = dependent;
  const int active = selectable(&z), tall = active > nv ? active : nv;
  double *memory = malloc(sizeof(double)*((size_t)z.width*((size_t)nv*(size_t)nv + 3)
                                          + (size_t)nv*(size_t)(tall + active + m + nv + 4)));
  if (!memory || nv > 64) {
    free(place);
    free(memory);
    return 0;
  }
  z.sign = memory;
  z.length = z.sign + z.width;
  z.shadow = z.length + z.width;
  z.table = z.shadow + z.width;
  double *a = z.table + (size_t)z.width*(size_t)nv*(size_t)nv, *moved = a + (size_t)tall*nv;
  double *wrenches = moved + (size_t)active*nv;
  double *work = wrenches + (size_t)m*nv, *diagonal = work + nv*nv + nv, *beta = diagonal + nv;
  for (int i = 0, bounded = 0, open = z.unlimited_at; i < m; ++i) {
    if (upper[i] == INFINITY) place[i] = open++;
    else place[i] = upper[i] > lower[i] ? bounded++ : -1;
  }
  for (int i = 0; i < z.width; ++i)
    z.sign[i] = i < z.limited ? 1.0 : i < z.limited + g ? -1.0 : 0.0;
  for (long k = 0; k < n; ++k) {
    const double *jacobian = l + k*l_stride, *held = load + k*load_stride;
    const double *wide = generators + k*generators_stride;
    const double *corner = vertices + k*vertices_stride;
    margin[k] = NAN;
    if (!all_finite(m*nv, jacobian) || !all_finite(nv, held) || !all_finite(g*nv, wide)
        || !all_finite(v*nv, corner)) {
      status[k] = NOT_FINITE;
      continue;
    }
    if (active < nv) { status[k] = TOO_FEW_MUSCLES; continue; }
    for (int i = 0, row = 0; i < m; ++i) {
      if (place[i] < 0) continue;
      memcpy(moved + row*nv, jacobian + i*nv, sizeof(double)*(size_t)nv);
      ++row;
    }
    int good = equilibrated(active, nv, moved, a);
    if (good) {
      pivoted_qr(active, nv, a, diagonal, beta, order);
      good = full_rank(active, nv, a, diagonal, rank_tolerance, work);
    }
    if (!good) { status[k] = RANK_DEFICIENT; continue; }
    unit_wrenches(m, nv, jacobian, scale, wrenches);
    memset(z.table, 0, sizeof(double)*(size_t)z.width*(size_t)nv);
    double size = 0.0;
    for (int j = 0; j < nv; ++j) {
      double *row = z.table + j*z.width;
      double centre = -held[j]*scale[j];
      for (int i = 0; i < m; ++i) {
        const double arm = wrenches[i*nv + j];
        if (upper[i] == INFINITY) {
          centre += arm*lower[i];
          row[place[i]] = arm;
        } else {
          centre += 0.5*arm*(lower[i] + upper[i]);
          if (place[i] >= 0) row[place[i]] = 0.5*arm*(upper[i] - lower[i]);
        }
      }
      row[z.centre] = centre;
      for (int i = 0; i < g; ++i) row[z.limited + i] = wide[i*nv + j]*scale[j];
      for (int i = 0; i < v; ++i) row[z.vertex_at + i] = corner[i*nv + j]*scale[j];
      size += held[j]*held[j]*scale[j]*scale[j];
    }
    size = sqrt(size);
    memset(z.length, 0, sizeof(double)*(size_t)z.width);
    for (int j = 0; j < nv; ++j) {
      const double *row = z.table + j*z.width;
      for (int i = 0; i < z.width; ++i) z.length[i] += row[i]*row[i];
    }
    for (int i = 0; i < z.width; ++i) {
      z.length[i] = sqrt(z.length[i]);
      if (i < z.unlimited_at || i == z.centre || (i >= z.vertex_at && i < z.vertex_at + v))
        size = fmax(size, z.length[i]);
    }
    z.margin = INFINITY;
    z.facets = 0;
    choose(&z, z.table, nv, 0);
    if (!z.facets) { status[k] = RANK_DEFICIENT; continue; }
    margin[k] = z.margin;
    status[k] = z.margin >= least - tolerance*size ? FEASIBLE : INFEASIBLE;
  }
  free(memory);
  free(place);
  return 1;
}
