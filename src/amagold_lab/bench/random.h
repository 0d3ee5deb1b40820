/* Random numbers for the C loops: xoshiro256+ (Blackman and Vigna) and Marsaglia's polar method. */
#include <math.h>
#include <stdint.h>
#include <time.h>

static uint64_t generator[4];
static float spare;
static int has_spare;

/* splitmix64 fills the generator from one seed, as its authors advise. */
static void seed_generator(uint64_t seed) {
    for (int word = 0; word < 4; word++) {
        uint64_t mixed = (seed += 0x9e3779b97f4a7c15u);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        generator[word] = mixed ^ (mixed >> 31);
    }
}

static inline uint64_t next_bits(void) {
    uint64_t bits = generator[0] + generator[3];
    uint64_t shifted = generator[1] << 17;
    generator[2] ^= generator[0];
    generator[3] ^= generator[1];
    generator[1] ^= generator[2];
    generator[0] ^= generator[3];
    generator[2] ^= shifted;
    generator[3] = (generator[3] << 45) | (generator[3] >> 19);
    return bits;
}

/* Uniform on (0, 1]. */
static inline float uniform(void) { return ((next_bits() >> 40) + 1) * 0x1p-24f; }

/* Uniform on 0 .. count - 1, by Lemire's multiplication; its bias is below count / 2^32. */
static inline uint32_t below(uint32_t count) { return (uint32_t)(((next_bits() >> 32) * count) >> 32); }

/* Two coordinates on (-1, 1) from one word; a point in the unit disc makes two normal numbers. */
static inline float normal(void) {
    if (has_spare) {
        has_spare = 0;
        return spare;
    }
    float x, y, square;
    do {
        uint64_t bits = next_bits();
        x = (int32_t)(bits >> 32) * 0x1p-31f;
        y = (int32_t)((bits & 0xffffffffu) | 1u) * 0x1p-31f;
        square = x * x + y * y;
    } while (square >= 1.0f || square == 0.0f);
    float scale = sqrtf(-2.0f * logf(square) / square);
    spare = y * scale;
    has_spare = 1;
    return x * scale;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}
