#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/random.hpp>
#include <dtrain/data/augment.hpp>

#include "augment/resample.hpp"
#include "augment/source_window.hpp"
#include "augment/window_pixels.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

Image window_noise(int c, int h, int w) {
  Image image{c, h, w, {}};
  RandomStream random(5, RandomUse::drawing, static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(w));
  for (int i = 0; i < c * h * w; ++i) image.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  return image;
}

TEST(Window, SidesOfAThinPictureAreBounded) {
  const Sides sides = with_shorter_edge(2, 60'000, 256);
  EXPECT_EQ(sides.h, 256);
  EXPECT_EQ(sides.w, 7'680'000);
  expect_error([] { with_shorter_edge(1, 60'000, 65'500); }, "resized to 3930000000 x 65500 pixels, a side is longer");
}

TEST(Window, TheLargestAspectRatioStandsBesideASmallest) {
  Augment options{.random_resized_crop = true, .max_random_aspect_ratio = 1.33f};
  expect_error<UsageError>([&] { check_augment(options); }, "give setting 'min-random-aspect-ratio' 0.75 too if 1.33");
  options.min_random_aspect_ratio = 0.75f;
  EXPECT_NO_THROW(check_augment(options));
  for (const float odd : {std::nanf(""), INFINITY}) {
    options.max_random_aspect_ratio = odd;
    expect_error<UsageError>([&] { check_augment(options); }, "setting 'max-random-aspect-ratio'");
    options.min_random_aspect_ratio = 0;
    expect_error<UsageError>([&] { check_augment(options); }, "setting 'max-random-aspect-ratio'");
    options.min_random_aspect_ratio = 0.75f;
  }
}

// Waves that a reduction to an eighth still shows.
Image waves(int h, int w) {
  Image image{3, h, w, {}};
  for (int i = 0; i < 3 * h * w; ++i) {
    const int x = i / 3 % w, y = i / 3 / w;
    image.pixels.push_back(static_cast<std::uint8_t>(128 + 100 * std::sin(x * 0.02 + i % 3) * std::cos(y * 0.03)));
  }
  return image;
}

double triangle(const Image& image, double y, double x, double reach_y, double reach_x, int c) {
  double sum = 0, weights = 0;
  for (int yy = 0; yy < image.h; ++yy) {
    for (int xx = 0; xx < image.w; ++xx) {
      const double weight =
          std::max(0.0, 1 - std::abs(yy - y) / reach_y) * std::max(0.0, 1 - std::abs(xx - x) / reach_x);
      sum += weight * image.pixels[static_cast<std::size_t>((yy * image.w + xx) * image.c + c)];
      weights += weight;
    }
  }
  return sum / weights;
}

TEST(Resample, IsATriangleOverWhatAnOutputCovers) {
  for (const int channels : {1, 3}) {
    const Image image = window_noise(channels, 33, 47);
    for (const auto& [h, w] : {std::pair{33, 20}, {10, 47}, {7, 5}, {50, 60}, {1, 1}, {66, 9}}) {
      const Image resized = resize_image(image, h, w);
      const double per_y = 33.0 / h, per_x = 47.0 / w;
      for (int i = 0; i < channels * h * w; ++i) {
        const int y = i / channels / w, x = i / channels % w;
        const double exact = triangle(image, (y + 0.5) * per_y - 0.5, (x + 0.5) * per_x - 0.5, std::max(1.0, per_y),
                                      std::max(1.0, per_x), i % channels);
        ASSERT_NEAR(resized.pixels[static_cast<std::size_t>(i)], exact, 1.1)
            << h << "x" << w << " at " << y << "," << x;
      }
    }
  }
}

// Whatever instructions the processor has: the same bits as one multiplication after another.
TEST(Resample, IsExactArithmetic) {
  const Image image = window_noise(4, 9, 200);
  const auto sum = [](int count, const std::int16_t* weight, const auto& pixel) {
    int total = 1 << (kWeightBits - 1);
    for (int k = 0; k < count; ++k) total += weight[k] * pixel(k);
    return static_cast<std::uint8_t>(total >> kWeightBits);
  };
  for (const int outputs : {1, 2, 3, 30, 31, 77, 150}) {
    for (const Filter filter : {Filter::bilinear, Filter::smooth}) {
      Taps taps;
      make_taps({0.3, 130.5, 0, 136}, outputs, filter, false, taps);
      const auto bytes = static_cast<std::size_t>(outputs) * kPixelBytes, count = static_cast<std::size_t>(taps.count);
      std::vector<std::uint8_t> across(bytes), down(bytes);
      resample_across(image.pixels.data(), taps, across.data());
      for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t first = static_cast<std::size_t>(taps.first[i / 4]) * 4 + i % 4;
        const auto pixel = [&](int k) { return image.pixels[first + static_cast<std::size_t>(k) * 4]; };
        ASSERT_EQ(across[i], sum(taps.count, &taps.weight[i / 4 * count], pixel)) << outputs << " at " << i;
      }
      std::vector<const std::uint8_t*> rows;
      for (std::size_t k = 0; k < count; ++k) rows.push_back(image.pixels.data() + k % 9 * 800);
      resample_down(rows.data(), taps.weight.data(), taps.count, static_cast<int>(bytes), down.data());
      for (std::size_t i = 0; i < bytes; ++i) {
        const auto pixel = [&](int k) { return rows[static_cast<std::size_t>(k)][i]; };
        ASSERT_EQ(down[i], sum(taps.count, taps.weight.data(), pixel)) << outputs << " at " << i;
      }
    }
  }
}

TEST(Resample, MirrorsTheTaps) {
  Taps plain, mirrored;
  make_taps({3.25, 20.5, 0, 40}, 7, Filter::smooth, false, plain);
  make_taps({3.25, 20.5, 0, 40}, 7, Filter::smooth, true, mirrored);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(plain.first[i], mirrored.first[6 - i]);
    EXPECT_EQ(plain.weight[i * static_cast<std::size_t>(plain.count)],
              mirrored.weight[(6 - i) * static_cast<std::size_t>(plain.count)]);
  }
}

using Floats = std::vector<float>;

Floats the_short_way(const std::string& jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  Floats out(static_cast<std::size_t>(shape.size()));
  EXPECT_TRUE(fill_from_jpeg(bytes_of(jpeg), options, key, shape, out.data()));
  return out;
}

Floats the_long_way(const std::string& jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  Image image;
  decode_image(bytes_of(jpeg), shape.c, image);
  Floats out(static_cast<std::size_t>(shape.size()));
  augment(image, options, key, shape, out);
  return out;
}

const Augment kNormal{.random_crop = true, .random_mirror = true, .mean = {100, 110, 120}, .std = {50, 60, 70}};

TEST(Window, OfAJpegIsWhatTheWholeImageHoldsThere) {
  const std::string full = encode_image(window_noise(3, 97, 131), Encoding::jpeg);
  const std::string halved =
      encode_image(window_noise(3, 97, 131), Encoding::jpeg, {.quality = 80, .full_colour = false});
  const std::string grey = encode_image(window_noise(1, 97, 131), Encoding::jpeg);
  for (const std::string& jpeg : {full, halved, grey}) {
    for (std::uint32_t sample = 0; sample < 40; ++sample) {
      for (const nn::Shape& shape : {nn::Shape{3, 24, 40}, nn::Shape{1, 97, 3}}) {
        ASSERT_EQ(the_short_way(jpeg, kNormal, {1, 2, sample}, shape),
                  the_long_way(jpeg, kNormal, {1, 2, sample}, shape))
            << "sample " << sample;
      }
    }
  }
}

TEST(Window, OfRandomSizeIsTheSameFromJpegAndImageAtFullSize) {
  Augment options = kNormal;
  options.random_resized_crop = true;
  options.min_random_area = 0.05f;
  options.max_random_area = 0.5f;
  const std::string jpeg = encode_image(window_noise(3, 97, 131), Encoding::jpeg, {.full_colour = false});
  for (std::uint32_t sample = 0; sample < 40; ++sample) {
    const nn::Shape shape{3, 64, 64};  // more than half of any window: nothing is reduced before
    ASSERT_EQ(the_short_way(jpeg, options, {1, 0, sample}, shape), the_long_way(jpeg, options, {1, 0, sample}, shape));
  }
}

TEST(Window, OfAReducedJpegIsNearTheLongWay) {
  Augment options{.random_resized_crop = true, .min_random_area = 0.3f};
  const std::string jpeg = encode_image(waves(500, 700), Encoding::jpeg, {.full_colour = false});
  for (std::uint32_t sample = 0; sample < 20; ++sample) {
    const nn::Shape shape{3, 40, 40};
    const Floats a = the_short_way(jpeg, options, {1, 0, sample}, shape),
                 b = the_long_way(jpeg, options, {1, 0, sample}, shape);
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i] - b[i]));
    EXPECT_LT(sum / static_cast<double>(a.size()), 1.5);
  }
}

TEST(Window, OfAProgressiveJpegIsTheSameToo) {
  const std::string jpeg = read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/colour_progressive.jpg");
  Image image;
  decode_image(bytes_of(jpeg), 3, image);
  const nn::Shape shape{3, image.h / 2, image.w / 3};
  for (std::uint32_t sample = 0; sample < 10; ++sample) {
    EXPECT_EQ(the_short_way(jpeg, kNormal, {1, 2, sample}, shape), the_long_way(jpeg, kNormal, {1, 2, sample}, shape));
  }
}

TEST(Window, NamesDamageWhereItLooks) {
  const std::string jpeg = encode_image(window_noise(3, 97, 131), Encoding::jpeg);
  Floats out(3 * 97 * 131);
  expect_error(
      [&] {
        fill_from_jpeg(bytes_of(jpeg.substr(0, jpeg.size() / 2)), {}, {}, {3, 97, 131}, out.data());
      },
      "JPEG: ");
  expect_error([&] { fill_from_jpeg(bytes_of(jpeg.substr(0, 40)), {}, {}, {3, 97, 131}, out.data()); }, "JPEG: ");
}

TEST(Window, LeavesToOthersWhatItCannotDo) {
  const std::string jpeg = encode_image(window_noise(3, 20, 30), Encoding::jpeg);
  Floats out(3 * 64 * 64);
  EXPECT_FALSE(fill_from_jpeg(bytes_of(jpeg), {.pad_size = 4}, {}, {3, 16, 16}, out.data()));
  EXPECT_FALSE(fill_from_jpeg(bytes_of(jpeg), {.max_random_rotate_angle = 4}, {}, {3, 16, 16}, out.data()));
  EXPECT_FALSE(fill_from_jpeg(bytes_of(jpeg), {}, {}, {3, 64, 64}, out.data())) << "smaller than the crop";
  const std::string inks = read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/cmyk.jpg");
  EXPECT_FALSE(fill_from_jpeg(bytes_of(inks), {}, {}, {3, 4, 4}, out.data()));
}

TEST(SourceWindow, OfRandomSizeKeepsItsLimits) {
  const Augment options{.random_resized_crop = true,
                        .min_random_area = 0.2f,
                        .max_random_area = 0.6f,
                        .min_random_aspect_ratio = 0.75f,
                        .max_random_aspect_ratio = 4.0f / 3};
  int high = 0;
  for (std::uint32_t sample = 0; sample < 500; ++sample) {
    const SourceWindow window = *draw_source_window(300, 400, options, {9, 1, sample}, {3, 224, 224});
    EXPECT_GE(window.y.from, 0);
    EXPECT_LE(window.y.from + window.y.extent, 300);
    EXPECT_LE(window.x.from + window.x.extent, 400);
    const double area = window.y.extent * window.x.extent / 120000, aspect = window.x.extent / window.y.extent;
    EXPECT_TRUE(area > 0.19 && area < 0.61) << area;
    EXPECT_TRUE(aspect > 0.73 && aspect < 1.36) << aspect;
    high += aspect < 1 ? 1 : 0;
  }
  EXPECT_GT(high, 150);
  EXPECT_LT(high, 350);
}

TEST(SourceWindow, OfAValidationImageIsTheMiddleOfTheResizedOne) {
  const SourceWindow window = *draw_source_window(512, 1024, {.resize = 256}, {}, {3, 224, 224});
  EXPECT_EQ(window.y.from, 32);  // (256 - 224) / 2 pixels of two
  EXPECT_EQ(window.y.extent, 448);
  EXPECT_EQ(window.x.from, 288);
  EXPECT_FALSE(window.mirror);
}

TEST(Augment, TakesARandomWindowOfTheWarpedAndPaddedPicture) {
  const Image image = waves(90, 120);
  const nn::Shape shape{3, 32, 32};
  const SampleKey key{3, 0, 5};
  Floats plain(static_cast<std::size_t>(shape.size())), turned = plain, padded = plain;
  Augment options{.random_resized_crop = true, .min_random_area = 1, .max_random_aspect_ratio = 0.01f};
  augment(image, options, key, shape, plain);
  options.max_random_rotate_angle = 40;
  augment(image, options, key, shape, turned);
  EXPECT_NE(plain, turned);
  options = {.pad_size = 200, .fill_value = 9, .random_resized_crop = true, .min_random_area = 1};
  augment(image, options, key, shape, padded);
  EXPECT_EQ(padded.front(), 9);
  EXPECT_GT(std::count(padded.begin(), padded.end(), 9.0f), shape.size() / 2);
}

TEST(Augment, RefusesWhatAWindowOfRandomSizeCannotBeHadWith) {
  expect_error<UsageError>([] { check_augment({.random_resized_crop = true, .max_random_scale = 2}); }, "combined");
  expect_error<UsageError>([] { check_augment({.resize = 256, .random_resized_crop = true}); }, "combined");
  Augment areas{.random_resized_crop = true, .min_random_area = 0.5f, .max_random_area = 0.4f};
  expect_error<UsageError>([&] { check_augment(areas); }, "setting 'min-random-area'");
  areas.random_resized_crop = false;
  EXPECT_NO_THROW(check_augment(areas)) << "they have no effect";
}

TEST(ShrunkJpeg, IsWhatResizingTheWholeGives) {
  for (const int channels : {1, 3}) {
    const std::string jpeg = encode_image(window_noise(channels, 97, 131), Encoding::jpeg);
    Image whole;
    decode_image(bytes_of(jpeg), kStoredChannels, whole);
    const auto shrunk = shrunk_jpeg(bytes_of(jpeg), 60);
    ASSERT_TRUE(shrunk);
    EXPECT_EQ(shrunk->pixels, resize_image(whole, 60, 81).pixels);
  }
}

// The decoder's fractions average as the resizing does, but not to the bit.
TEST(ShrunkJpeg, OfALargePictureLooksTheSame) {
  const std::string jpeg = encode_image(waves(801, 1203), Encoding::jpeg);
  Image whole;
  decode_image(bytes_of(jpeg), kStoredChannels, whole);
  for (const int edge : {400, 100, 31, 1}) {
    const auto shrunk = shrunk_jpeg(bytes_of(jpeg), edge);
    ASSERT_TRUE(shrunk);
    const Image exact = resize_image(whole, shrunk->h, shrunk->w);
    ASSERT_EQ(shrunk->pixels.size(), exact.pixels.size());
    for (std::size_t i = 0; i < exact.pixels.size(); ++i) ASSERT_NEAR(shrunk->pixels[i], exact.pixels[i], 6) << edge;
  }
}

TEST(ShrunkJpeg, LeavesAloneWhatIsSmallAndRefusesWhatIsCut) {
  const std::string jpeg = encode_image(window_noise(3, 97, 131), Encoding::jpeg);
  EXPECT_FALSE(shrunk_jpeg(bytes_of(jpeg), 97));
  EXPECT_THROW(shrunk_jpeg(bytes_of(jpeg).first(jpeg.size() / 2), 60), DataError);
}

}  // namespace
}  // namespace dtrain::data
