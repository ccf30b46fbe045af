#include <dtrain/data/mix.hpp>

#include <algorithm>

#include <dtrain/base/math.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::data {
namespace {

// The logarithm of a draw of Gamma(alpha, 1): Marsaglia and Tsang 2000 for alpha + 1, and U^(1/alpha) of it, which may
// be smaller than any double.
double log_gamma_draw(RandomStream& random, double alpha) {
  const double d = alpha + 2.0 / 3, c = 1 / portable_sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    const double u = 1 - static_cast<double>(random.uniform());  // (0, 1]
    if (root <= 0) continue;
    const double cube = root * root * root, log_cube = portable_log(cube);
    if (portable_log(u) >= 0.5 * x * x + d * (1 - cube + log_cube)) continue;
    return portable_log(d) + log_cube + portable_log(1 - static_cast<double>(random.uniform())) / alpha;
  }
}

// From Beta(alpha, alpha).
double draw_share(RandomStream& random, double alpha) {
  const double one = log_gamma_draw(random, alpha), other = log_gamma_draw(random, alpha);
  return 1 / (1 + portable_exp(std::clamp(other - one, -700.0, 700.0)));
}

// A box with the rest of the area, around any pixel, cut off at the edges; timm's rand_bbox.
MixDraw draw_box(RandomStream& random, double share, const nn::Shape& image) {
  const double ratio = portable_sqrt(1 - share);
  const auto side = [&](int edge) { return static_cast<int>(edge * ratio) / 2; };
  const int y = static_cast<int>(random.below(static_cast<std::uint32_t>(image.h)));
  const int x = static_cast<int>(random.below(static_cast<std::uint32_t>(image.w)));
  MixDraw draw{.cuts = true,
               .top = std::max(0, y - side(image.h)),
               .left = std::max(0, x - side(image.w)),
               .bottom = std::min(image.h, y + side(image.h)),
               .right = std::min(image.w, x + side(image.w))};
  const double inside = static_cast<double>(draw.bottom - draw.top) * (draw.right - draw.left);
  draw.share = static_cast<float>(1 - inside / (static_cast<double>(image.h) * image.w));
  return draw;
}

void blend(float share, std::int64_t size, float* one, float* other) {
  const float rest = 1 - share;
  for (std::int64_t k = 0; k < size; ++k) {
    const float a = one[k], b = other[k];
    one[k] = share * a + rest * b;
    other[k] = share * b + rest * a;
  }
}

void exchange_box(const MixDraw& draw, const nn::Shape& image, float* one, float* other) {
  for (int c = 0; c < image.c; ++c) {
    for (int y = draw.top; y < draw.bottom; ++y) {
      const std::int64_t row = (std::int64_t{c} * image.h + y) * image.w;
      std::swap_ranges(one + row + draw.left, one + row + draw.right, other + row + draw.left);
    }
  }
}

}  // namespace

MixDraw draw_mix(const MixOptions& options, const MixKey& key, const nn::Shape& image) {
  RandomStream random(key.seed, RandomUse::mix, key.epoch, key.position);
  const bool tails = random.uniform() < 0.5f;
  const bool cuts = options.cutmix > 0 && (options.mixup == 0 || tails);
  const double share = draw_share(random, cuts ? options.cutmix : options.mixup);
  return cuts ? draw_box(random, share, image) : MixDraw{.share = static_cast<float>(share)};
}

void mix_images(const MixDraw& draw, const nn::Shape& image, int n, float* images) {
  for (int i = 0; i < n / 2; ++i) {
    float *const one = images + i * image.size(), *const other = images + (n - 1 - i) * image.size();
    if (draw.cuts) {
      exchange_box(draw, image, one, other);
    } else {
      blend(draw.share, image.size(), one, other);
    }
  }
}

}  // namespace dtrain::data
