#include "thermal.h"

#include <math.h>

#include "numbers.h"

#define COPPER 0.0039F /* growth of the resistance of copper [1/K], relative to 25 C */
#define REFERENCE 25.0F
#define COLDEST (-40.0F)
#define HOTTEST 400.0F

void thermal_model_init(struct thermal_model *model, const struct thermal_constants *constants,
                        float dt)
{
    const float g1 = 1.0F / constants->core_resistance;
    const float g2 = 1.0F / constants->housing_resistance;
    const float a11 = -g1 / constants->core_capacity;
    const float a12 = g1 / constants->core_capacity;
    const float a21 = g1 / constants->housing_capacity;
    const float a22 = -(g1 + g2) / constants->housing_capacity;
    /* A is similar to a symmetric matrix: two distinct real negative eigenvalues. The slow one by
     * det / fast, since middle + half cancels. */
    const float middle = 0.5F * (a11 + a22);
    const float half = sqrtf((0.25F * (a11 - a22) * (a11 - a22)) + (a12 * a21));
    const float fast = middle - half;
    const float slow = ((a11 * a22) - (a12 * a21)) / fast;
    const float es = expm1f(slow * dt);
    const float ef = expm1f(fast * dt);
    /* F - 1 = es S + ef (1 - S), with the projector S = (A - fast 1) / (slow - fast) */
    const float s11 = (a11 - fast) / (slow - fast);
    const float s12 = a12 / (slow - fast);
    const float s21 = a21 / (slow - fast);
    const float s22 = (a22 - fast) / (slow - fast);

    model->f11 = (es * s11) + (ef * (1.0F - s11));
    model->f12 = (es - ef) * s12;
    model->f21 = (es - ef) * s21;
    model->f22 = (es * s22) + (ef * (1.0F - s22));
    model->b1 = (((es / slow) * s11) + ((ef / fast) * (1.0F - s11))) / constants->core_capacity;
    model->b2 = (((es / slow) - (ef / fast)) * s21) / constants->core_capacity;
    model->resistance = constants->resistance;
    model->ambient = constants->ambient;
}

void thermal_init(struct thermal *thermal, float temperature)
{
    thermal->core = temperature;
    thermal->housing = temperature;
    thermal->latched = false;
}

void thermal_step(struct thermal *thermal, const struct thermal_model *model, float square)
{
    const float x1 = thermal->core - model->ambient;
    const float x2 = thermal->housing - model->ambient;
    const float hotter = 1.0F + (COPPER * (thermal->core - REFERENCE));
    const float heat = model->resistance * square * hotter;

    thermal->core += (model->f11 * x1) + (model->f12 * x2) + (model->b1 * heat);
    thermal->housing += (model->f21 * x1) + (model->f22 * x2) + (model->b2 * heat);
    thermal->core = clampf(thermal->core, COLDEST, HOTTEST);
    thermal->housing = clampf(thermal->housing, COLDEST, HOTTEST);
}

void thermal_measured(struct thermal *thermal, float housing, bool first)
{
    thermal->housing = clampf(housing, COLDEST, HOTTEST);
    if (first) {
        thermal->core = thermal->housing;
    }
}

static float hottest(const struct thermal *thermal)
{
    return maxf(thermal->core, thermal->housing);
}

float thermal_derating(struct thermal *thermal, float soft, float hard)
{
    const float temperature = hottest(thermal);

    /* written so that a temperature that is no number derates to 0 as well */
    if (!(temperature < hard)) {
        thermal->latched = true;
    }
    if (thermal->latched) {
        return 0.0F;
    }
    if (temperature <= soft) {
        return 1.0F;
    }
    return (hard - temperature) / (hard - soft);
}

bool thermal_clear(struct thermal *thermal, float soft)
{
    if (hottest(thermal) < soft) {
        thermal->latched = false;
    }
    return !thermal->latched;
}
