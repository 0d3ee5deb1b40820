/* AMAGOLD on a logistic regression, one chain on one core: logistic TRANSITIONS BLOCKS SEED DATA STEP_SIZE FRICTION.
   DATA holds float32 rows of 16: 15 predictors times the outcome's sign, then a zero; after them 16 starting coefficients.
   Prints steps per second, then each block's mean acceptance probability and mean first coefficient. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { NUM_STEPS = 10, EXAMPLES = 690, WIDTH = 16, PARAMETERS = 15, BATCH = 32 };
static float rows[EXAMPLES + 1][WIDTH];

static float product(const float *left, const float *right) {
    float total = 0;
    for (int column = 0; column < PARAMETERS; column++) total += left[column] * right[column];
    return total;
}

/* U = |theta|^2 / 2 + sum_i log(1 + exp(-z_i)) */
static float energy(const float *at) {
    float total = 0.5f * product(at, at);
    for (int row = 0; row < EXAMPLES; row++) total += logf(1 + expf(-product(rows[row], at)));
    return total;
}

static void batch_gradient(const float *at, float *gradient) {
    for (int column = 0; column < PARAMETERS; column++) gradient[column] = at[column];
    for (int draw = 0; draw < BATCH; draw++) {
        const float *row = rows[below(EXAMPLES)];
        float weight = ((float)EXAMPLES / BATCH) / (1 + expf(product(row, at)));
        for (int column = 0; column < PARAMETERS; column++) gradient[column] -= weight * row[column];
    }
}

int main(int count, char **words) {
    if (count != 7) return 2;
    long transitions = atol(words[1]), blocks = atol(words[2]), per_block = transitions / blocks;
    seed_generator(atol(words[3]));
    FILE *data = fopen(words[4], "rb");
    if (!data || fread(rows, sizeof rows, 1, data) != 1) return 1;
    float step_size = atof(words[5]), decay = step_size * atof(words[6]);
    float keep = (1 - decay) / (1 + decay), push = step_size / (1 + decay), spread = 2 * sqrtf(decay) / (1 + decay);
    float position[PARAMETERS], at[PARAMETERS], momentum[PARAMETERS], gradient[PARAMETERS];
    memcpy(position, rows[EXAMPLES], sizeof position);
    float current = energy(position);
    double acceptance[blocks], mean[blocks], start = 0;

    for (long block = -1; block < blocks; block++) { /* block -1 is the burn-in */
        double accepted = 0, total = 0;
        if (block == 0) start = now();
        for (long transition = 0; transition < per_block; transition++) {
            float work = 0;
            for (int column = 0; column < PARAMETERS; column++) {
                momentum[column] = normal();
                at[column] = position[column] + 0.5f * step_size * momentum[column];
            }
            for (int step = 0; step < NUM_STEPS; step++) {
                batch_gradient(at, gradient);
                for (int column = 0; column < PARAMETERS; column++) {
                    float next = keep * momentum[column] - push * gradient[column] + spread * normal();
                    work += gradient[column] * (momentum[column] + next);
                    momentum[column] = next;
                    at[column] += step_size * next; /* two half drifts in a row are one whole drift */
                }
            }
            for (int column = 0; column < PARAMETERS; column++) at[column] -= 0.5f * step_size * momentum[column];
            float proposed = energy(at), log_ratio = current - proposed + 0.5f * step_size * work;
            float probability = log_ratio < 0 ? expf(log_ratio) : 1;
            accepted += probability;
            if (uniform() < probability) memcpy(position, at, sizeof position), current = proposed;
            total += position[0];
        }
        if (block >= 0) acceptance[block] = accepted / per_block, mean[block] = total / per_block;
    }
    printf("%.6g\n", blocks * per_block * NUM_STEPS / (now() - start));
    for (long block = 0; block < blocks; block++) printf("%.6g %.6g\n", acceptance[block], mean[block]);
    return 0;
}
