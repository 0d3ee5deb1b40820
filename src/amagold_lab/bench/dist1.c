/* AMAGOLD on Dist1, N(first; second^2 / 4, 1) N(second; 0, 4), one chain on one core: dist1 TRANSITIONS BLOCKS SEED.
   Prints steps per second, then each block's mean acceptance probability and mean first coordinate. */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

enum { NUM_STEPS = 10 };
static const float STEP_SIZE = 0.15f, FRICTION = 0.25f, GRADIENT_NOISE = 1.0f;

typedef struct {
    float first, second;
} pair;

static float energy(pair at) {
    float off = at.first - 0.25f * at.second * at.second;
    return 0.5f * off * off + 0.125f * at.second * at.second;
}

static inline pair energy_gradient(pair at) {
    float off = at.first - 0.25f * at.second * at.second;
    return (pair){off, (0.25f - 0.5f * off) * at.second};
}

int main(int count, char **words) {
    long transitions = atol(words[1]), blocks = atol(words[2]), per_block = transitions / blocks;
    seed_generator(count > 3 ? atol(words[3]) : 0);
    float decay = STEP_SIZE * FRICTION;
    float keep = (1 - decay) / (1 + decay), push = STEP_SIZE / (1 + decay), spread = 2 * sqrtf(decay) / (1 + decay);
    pair position = {0, 0};
    float current = energy(position);
    double acceptance[blocks], mean[blocks], start = 0;

    for (long block = -1; block < blocks; block++) { /* block -1 is the burn-in */
        double accepted = 0, total = 0;
        if (block == 0) start = now();
        for (long transition = 0; transition < per_block; transition++) {
            pair momentum = {normal(), normal()};
            float work = 0;
            /* two half drifts in a row are one whole drift */
            pair at = {position.first + 0.5f * STEP_SIZE * momentum.first, position.second + 0.5f * STEP_SIZE * momentum.second};
            for (int step = 0; step < NUM_STEPS; step++) {
                pair gradient = energy_gradient(at);
                gradient.first += GRADIENT_NOISE * normal();
                gradient.second += GRADIENT_NOISE * normal();
                pair next = {keep * momentum.first - push * gradient.first + spread * normal(),
                             keep * momentum.second - push * gradient.second + spread * normal()};
                work += gradient.first * (momentum.first + next.first) + gradient.second * (momentum.second + next.second);
                momentum = next;
                at.first += STEP_SIZE * momentum.first;
                at.second += STEP_SIZE * momentum.second;
            }
            at.first -= 0.5f * STEP_SIZE * momentum.first;
            at.second -= 0.5f * STEP_SIZE * momentum.second;
            float proposed = energy(at), log_ratio = current - proposed + 0.5f * STEP_SIZE * work;
            float probability = log_ratio < 0 ? expf(log_ratio) : 1;
            accepted += probability;
            if (uniform() < probability) position = at, current = proposed;
            total += position.first;
        }
        if (block >= 0) acceptance[block] = accepted / per_block, mean[block] = total / per_block;
    }
    printf("%.6g\n", blocks * per_block * NUM_STEPS / (now() - start));
    for (long block = 0; block < blocks; block++) printf("%.6g %.6g\n", acceptance[block], mean[block]);
    return 0;
}
