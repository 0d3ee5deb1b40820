/* AMAGOLD on the double well, one chain on one core: double_well TRANSITIONS BLOCKS SEED.
   Prints steps per second, then each block's mean acceptance probability and mean position. */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

enum { NUM_STEPS = 10 };
static const float STEP_SIZE = 0.25f, FRICTION = 0.25f, GRADIENT_NOISE = 1.0f;

static float energy(float at) { return (at + 4) * (at + 1) * (at - 1) * (at - 3) / 14 + 0.5f; }

/* The polynomial above, differentiated. */
static inline float energy_gradient(float at) { return (((4 * at + 3) * at - 26) * at - 1) / 14; }

int main(int count, char **words) {
    long transitions = atol(words[1]), blocks = atol(words[2]), per_block = transitions / blocks;
    seed_generator(count > 3 ? atol(words[3]) : 0);
    float decay = STEP_SIZE * FRICTION;
    float keep = (1 - decay) / (1 + decay), push = STEP_SIZE / (1 + decay), spread = 2 * sqrtf(decay) / (1 + decay);
    float position = 0, current = energy(position);
    double acceptance[blocks], mean[blocks], start = 0;

    for (long block = -1; block < blocks; block++) { /* block -1 is the burn-in */
        double accepted = 0, total = 0;
        if (block == 0) start = now();
        for (long transition = 0; transition < per_block; transition++) {
            float momentum = normal(), work = 0;
            /* two half drifts in a row are one whole drift */
            float at = position + 0.5f * STEP_SIZE * momentum;
            for (int step = 0; step < NUM_STEPS; step++) {
                float gradient = energy_gradient(at) + GRADIENT_NOISE * normal();
                float next = keep * momentum - push * gradient + spread * normal();
                work += gradient * (momentum + next);
                momentum = next;
                at += STEP_SIZE * momentum;
            }
            at -= 0.5f * STEP_SIZE * momentum;
            float proposed = energy(at), log_ratio = current - proposed + 0.5f * STEP_SIZE * work;
            float probability = log_ratio < 0 ? expf(log_ratio) : 1;
            accepted += probability;
            if (uniform() < probability) position = at, current = proposed;
            total += position;
        }
        if (block >= 0) acceptance[block] = accepted / per_block, mean[block] = total / per_block;
    }
    printf("%.6g\n", blocks * per_block * NUM_STEPS / (now() - start));
    for (long block = 0; block < blocks; block++) printf("%.6g %.6g\n", acceptance[block], mean[block]);
    return 0;
}
