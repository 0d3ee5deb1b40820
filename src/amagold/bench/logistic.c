/* AMAGOLD on a logistic regression, one chain on one core: logistic TRANSITIONS BLOCKS SEED DATA STEP_SIZE FRICTION.
   DATA holds float32 rows of 16: 15 predictors times the outcome's sign, then a zero; after them 16 starting coefficients.
   Prints steps per second, then each block's mean acceptance probability and mean first coefficient. */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

enum { NUM_STEPS = 10, EXAMPLES = 690, WIDTH = 16, PARAMETERS = 15, BATCH = 32 };
typedef float Row __attribute__((vector_size(WIDTH * sizeof(float)))); /* arithmetic on a whole row at once */
static Row rows[EXAMPLES + 1];
static float columns[PARAMETERS][EXAMPLES]; /* the same data again, for products that run over all examples */

static inline float sum(Row row) {
    float total = 0;
    for (int column = 0; column < WIDTH; column++) total += row[column];
    return total;
}

/* U = |theta|^2 / 2 + sum_i log(1 + exp(-z_i)) */
static float energy(Row at) {
    float margins[EXAMPLES] = {0}, total = 0;
    for (int column = 0; column < PARAMETERS; column++)
        for (int row = 0; row < EXAMPLES; row++) margins[row] += columns[column][row] * at[column];
    for (int row = 0; row < EXAMPLES; row++) total += logf(1 + expf(-margins[row]));
    return total + 0.5f * sum(at * at);
}

static inline Row batch_gradient(Row at) {
    int chosen[BATCH];
    float weights[BATCH];
    for (int row = 0; row < BATCH; row++) chosen[row] = below(EXAMPLES);
    for (int row = 0; row < BATCH; row++) weights[row] = sum(rows[chosen[row]] * at);
    for (int row = 0; row < BATCH; row++) weights[row] = ((float)EXAMPLES / BATCH) / (1 + expf(weights[row]));
    Row gradient = at;
    for (int row = 0; row < BATCH; row++) gradient -= weights[row] * rows[chosen[row]];
    return gradient;
}

static inline Row normal_row(void) {
    float values[WIDTH] __attribute__((aligned(sizeof(Row))));
    for (int column = 0; column < PARAMETERS; column++) values[column] = normal();
    values[PARAMETERS] = 0;
    return *(Row *)values;
}

int main(int count, char **words) {
    if (count != 7) return 2;
    long transitions = atol(words[1]), blocks = atol(words[2]), per_block = transitions / blocks;
    seed_generator(atol(words[3]));
    FILE *data = fopen(words[4], "rb");
    if (!data || fread(rows, sizeof rows, 1, data) != 1) return 1;
    float step_size = atof(words[5]), decay = step_size * atof(words[6]);
    float keep = (1 - decay) / (1 + decay), push = step_size / (1 + decay), spread = 2 * sqrtf(decay) / (1 + decay);
    for (int row = 0; row < EXAMPLES; row++)
        for (int column = 0; column < PARAMETERS; column++) columns[column][row] = rows[row][column];
    Row position = rows[EXAMPLES];
    float current = energy(position);
    double acceptance[blocks], mean[blocks], start = 0;

    for (long block = -1; block < blocks; block++) { /* block -1 is the burn-in */
        double accepted = 0, total = 0;
        if (block == 0) start = now();
        for (long transition = 0; transition < per_block; transition++) {
            Row momentum = normal_row(), work = {0};
            /* two half drifts in a row are one whole drift */
            Row at = position + 0.5f * step_size * momentum;
            for (int step = 0; step < NUM_STEPS; step++) {
                Row gradient = batch_gradient(at);
                Row next = keep * momentum - push * gradient + spread * normal_row();
                work += gradient * (momentum + next);
                momentum = next;
                at += step_size * momentum;
            }
            at -= 0.5f * step_size * momentum;
            float proposed = energy(at), log_ratio = current - proposed + 0.5f * step_size * sum(work);
            float probability = log_ratio < 0 ? expf(log_ratio) : 1;
            accepted += probability;
            if (uniform() < probability) position = at, current = proposed;
            total += position[0];
        }
        if (block >= 0) acceptance[block] = accepted / per_block, mean[block] = total / per_block;
    }
    printf("%.6g\n", blocks * per_block * NUM_STEPS / (now() - start));
    for (long block = 0; block < blocks; block++) printf("%.6g %.6g\n", acceptance[block], mean[block]);
    return 0;
}
