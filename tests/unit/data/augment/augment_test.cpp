#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/data/augment.hpp>

#include "augment_reference.hpp"

namespace dtrain::data {
namespace {

Image noise(int c, int h, int w, std::uint32_t which = 0) {
  RandomStream random(7, RandomUse::drawing, which, 0);
  Image image = reference::blank(c, h, w, 0);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

// Pixel (y, x) has red y and green x, so that a crop tells where it was taken.
Image coordinates(int h, int w) {
  Image image = reference::blank(3, h, w, 0);
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) {
      reference::put(image, y, x, 0, y);
      reference::put(image, y, x, 1, x);
    }
  return image;
}

std::vector<float> run(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  std::vector<float> out(static_cast<std::size_t>(shape.size()), NAN);
  augment(image, options, key, shape, out);
  return out;
}

void expect_like_reference(const Image& image, const Augment& options, const nn::Shape& shape, std::uint32_t samples) {
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const SampleKey key{3, 1, sample};
    const auto got = run(image, options, key, shape), expected = reference::augment(image, options, key, shape);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], expected[i]) << "sample " << sample << " value " << i;
  }
}

// One grey level may differ where interpolation lies within rounding error of a half, and rarely.
void expect_nearly_like_reference(const Image& image, const Augment& options, const nn::Shape& shape,
                                  std::uint32_t samples) {
  std::size_t different = 0, all = 0;
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const SampleKey key{3, 1, sample};
    const auto got = run(image, options, key, shape), expected = reference::augment(image, options, key, shape);
    for (std::size_t i = 0; i < got.size(); ++i, ++all) {
      ASSERT_NEAR(got[i], expected[i], 1.0f) << "sample " << sample << " value " << i;
      different += got[i] != expected[i] ? 1 : 0;
    }
  }
  EXPECT_LE(different * 1000, all);
}

Augment crop_and_mirror() {
  Augment options;
  options.pad_size = 4;
  options.random_crop = options.random_mirror = true;
  options.mean = {123.68f, 116.779f, 103.939f};
  options.std = {58.4f, 57.1f, 57.4f};
  return options;
}

Augment cifar10_recipe() {
  Augment options = crop_and_mirror();
  options.max_random_h = 36;
  options.max_random_s = options.max_random_l = 50;
  return options;
}

TEST(Augment, PadCropMirrorAndNormaliseEqualTheReference) {
  expect_like_reference(noise(3, 32, 32), crop_and_mirror(), {3, 28, 28}, 64);
  expect_like_reference(noise(3, 32, 32), crop_and_mirror(), {3, 32, 32}, 64);
  expect_like_reference(noise(1, 28, 28), crop_and_mirror(), {1, 28, 28}, 64);
  expect_like_reference(noise(3, 37, 53), crop_and_mirror(), {3, 21, 45}, 64);
}

TEST(Augment, TheCifar10RecipeEqualsTheReference) {
  for (std::uint32_t which = 0; which < 4; ++which)
    expect_like_reference(noise(3, 32, 32, which), cifar10_recipe(), {3, 28, 28}, 32);
  expect_like_reference(noise(1, 32, 32), cifar10_recipe(), {1, 28, 28}, 32);
}

TEST(Augment, ReflectedPaddingEqualsTheReference) {
  const Augment crop{.pad_size = 4, .reflect_pad = true, .random_crop = true, .random_mirror = true};
  expect_like_reference(noise(3, 32, 32), crop, {3, 32, 32}, 64);
  Augment turned = crop;
  turned.max_random_rotate_angle = 20;
  expect_nearly_like_reference(noise(3, 32, 32), turned, {3, 32, 32}, 64);
}

TEST(Augment, PaddingReflectsAtTheOutermostPixelAsOftenAsItTakes) {
  const Image row{1, 1, 3, {10, 20, 30}};
  const std::vector<float> padded = run(row, {.pad_size = 3, .reflect_pad = true}, {}, {1, 1, 9});
  EXPECT_EQ(padded, (std::vector<float>{20, 30, 20, 10, 20, 30, 20, 10, 20}));
}

TEST(Augment, AlternateMirrorsShowEveryImageBothWaysInTwoEpochs) {
  const Augment coin{.random_mirror = true}, alternate{.random_mirror = true, .alternate_mirror = true};
  const Image image = coordinates(4, 4);
  const auto mirrored = [&](const Augment& options, std::uint32_t epoch, std::uint32_t sample) {
    return run(image, options, {3, epoch, sample}, {3, 4, 4})[16] != 0;  // green of the first pixel is its x
  };
  int first = 0;
  for (std::uint32_t sample = 0; sample < 200; ++sample) {
    const bool at_first = mirrored(alternate, 0, sample);
    first += at_first;
    EXPECT_EQ(at_first, mirrored(coin, 0, sample));
    EXPECT_NE(at_first, mirrored(alternate, 1, sample));
    EXPECT_EQ(at_first, mirrored(alternate, 2, sample));
    EXPECT_FALSE(mirrored({.alternate_mirror = true}, 1, sample));
  }
  EXPECT_GT(first, 70);
  EXPECT_LT(first, 130);
}

TEST(Augment, CutoutEqualsTheReference) {
  for (const int side : {1, 2, 7, 16, 28}) {
    Augment options = crop_and_mirror();
    options.cutout = side;
    expect_like_reference(noise(3, 32, 32), options, {3, 28, 28}, 64);
    expect_like_reference(noise(1, 37, 53), options, {1, 28, 45}, 64);
    options.max_random_h = options.max_random_l = 20;
    expect_like_reference(noise(3, 32, 32), options, {3, 28, 28}, 64);
  }
}

// Whatever made the image before it: a decoded window, a resized one, one that was drawn as a whole.
TEST(Augment, CutoutTakesASquareOfTheSameImageAndNothingElse) {
  const nn::Shape shape{3, 12, 14};
  for (const Augment& plain :
       {Augment{.random_crop = true}, Augment{.random_resized_crop = true}, Augment{.resize = 15, .random_crop = true},
        Augment{.random_resized_crop = true, .max_random_l = 9},
        Augment{.random_resized_crop = true, .max_random_rotate_angle = 9}}) {
    for (const Encoding encoding : {Encoding::raw, Encoding::png, Encoding::jpeg}) {
      const std::string payload = encode_image(noise(3, 31, 40), encoding);
      Augment cut = plain;
      cut.cutout = 5;
      for (std::uint32_t sample = 0; sample < 16; ++sample) {
        const SampleKey key{3, 1, sample};
        std::vector<float> expected(static_cast<std::size_t>(shape.size())), got(expected);
        Image scratch;
        decode_and_augment(bytes_of(payload), plain, key, shape, scratch, expected);
        decode_and_augment(bytes_of(payload), cut, key, shape, scratch, got);
        reference::cut_out(cut, key, shape, expected);
        ASSERT_EQ(got, expected) << static_cast<int>(encoding) << ", sample " << sample;
      }
    }
  }
}

TEST(Augment, CutoutsHaveTheirMiddleInEveryPixelEquallyOften) {
  const Image white = reference::blank(1, 4, 5, 255);
  std::vector<int> seen(20);
  for (std::uint32_t sample = 0; sample < 4000; ++sample) {
    const auto out = run(white, {.cutout = 1}, {1, 0, sample}, {1, 4, 5});
    const auto hole = std::find(out.begin(), out.end(), 0.0f);
    ASSERT_EQ(std::count(out.begin(), out.end(), 0.0f), 1);
    ++seen[static_cast<std::size_t>(hole - out.begin())];
  }
  double chi_squared = 0;
  for (const int count : seen) chi_squared += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_LT(chi_squared, 43.8);  // 19 degrees of freedom: exceeded once in a thousand seeds
}

TEST(Augment, ImagesThatArePaddedBeyondTheCropEqualTheReference) {
  Augment options = crop_and_mirror();
  options.pad_size = 40;
  expect_like_reference(noise(3, 5, 7), options, {3, 30, 30}, 64);
}

TEST(Augment, WarpsEqualTheReference) {
  Augment options = cifar10_recipe();
  options.mean = {};
  options.std = {1, 1, 1};
  options.max_random_h = options.max_random_s = options.max_random_l = 0;
  options.max_random_rotate_angle = 10;
  expect_nearly_like_reference(noise(3, 40, 44), options, {3, 28, 28}, 32);
  options.max_random_shear_ratio = 0.1f;
  options.max_random_aspect_ratio = 0.25f;
  expect_nearly_like_reference(noise(3, 40, 44), options, {3, 28, 28}, 32);
  options.min_random_scale = 0.8f;
  options.max_random_scale = 1.5f;
  expect_nearly_like_reference(noise(3, 40, 44), options, {3, 28, 28}, 32);
  expect_nearly_like_reference(noise(1, 40, 44), options, {1, 48, 48}, 32);
}

TEST(Augment, SmallImagesAreResizedUpLikeTheReference) {
  Augment options;
  expect_nearly_like_reference(noise(3, 20, 20), options, {3, 28, 28}, 1);
  options.random_crop = options.random_mirror = true;
  expect_nearly_like_reference(noise(3, 20, 11), options, {3, 28, 28}, 16);
  options.pad_size = 2;
  expect_nearly_like_reference(noise(3, 9, 28), options, {3, 28, 28}, 16);
}

TEST(Augment, WithoutOptionsItIsTheCentre) {
  const auto out = run(coordinates(32, 40), {}, {}, {3, 28, 28});
  EXPECT_EQ(out[0], 2);        // red of the first pixel: its row
  EXPECT_EQ(out[28 * 28], 6);  // green: its column
}

TEST(Augment, APureRotationByZeroDegreesChangesNothing) {
  Augment options;
  options.max_random_rotate_angle = 0.5f;  // only whole degrees are drawn
  const Image image = noise(3, 32, 32);
  EXPECT_EQ(run(image, options, {1, 2, 3}, {3, 32, 32}), run(image, {}, {1, 2, 3}, {3, 32, 32}));
}

TEST(Augment, CropsReachEveryPlaceEquallyOftenAndBothMirrors) {
  Augment options;
  options.random_crop = options.random_mirror = true;
  std::map<std::tuple<int, int, bool>, int> seen;
  const int samples = 5 * 5 * 2 * 200;
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const auto out = run(coordinates(12, 12), options, {1, 0, sample}, {3, 8, 8});
    const float first = out[64], last = out[71];
    ++seen[{static_cast<int>(out[0]), static_cast<int>(std::min(first, last)), first > last}];
  }
  EXPECT_EQ(seen.size(), 50u);
  double chi_squared = 0;
  for (const auto& [place, count] : seen) {
    EXPECT_TRUE(std::get<0>(place) <= 4 && std::get<1>(place) <= 4);
    chi_squared += (count - 200.0) * (count - 200.0) / 200.0;
  }
  EXPECT_LT(chi_squared, 85.4);  // 49 degrees of freedom: exceeded once in a thousand seeds
}

TEST(Augment, TurningOneOptionOnLeavesTheOtherChoicesAsTheyWere) {
  Augment crop;
  crop.random_crop = true;
  Augment both = crop;
  both.max_random_h = 1;  // cut towards zero: shifts by nothing, yet takes the jitter's way
  Augment mirrored = crop;
  mirrored.random_mirror = true;
  const Image image = coordinates(12, 12);
  for (std::uint32_t sample = 0; sample < 32; ++sample) {
    const auto plain = run(image, crop, {1, 0, sample}, {3, 8, 8}),
               flipped = run(image, mirrored, {1, 0, sample}, {3, 8, 8});
    EXPECT_EQ(plain[0], flipped[0]);
    EXPECT_EQ(plain[64], std::min(flipped[64], flipped[71]));
    EXPECT_NEAR(plain[0], run(image, both, {1, 0, sample}, {3, 8, 8})[0], 1);
  }
}

TEST(Augment, SeedEpochAndSampleEachChangeTheChoice) {
  const Image image = noise(3, 32, 32);
  std::set<std::vector<float>> different;
  for (const SampleKey key : {SampleKey{1, 1, 1}, SampleKey{2, 1, 1}, SampleKey{1, 2, 1}, SampleKey{1, 1, 2}}) {
    const auto once = run(image, cifar10_recipe(), key, {3, 28, 28});
    EXPECT_EQ(once, run(image, cifar10_recipe(), key, {3, 28, 28}));
    different.insert(once);
  }
  EXPECT_EQ(different.size(), 4u);
}

TEST(Augment, ChannelsThatDoNotFitAreADataErrorThatNamesTheOption) {
  try {
    run(noise(1, 8, 8), {}, {}, {3, 8, 8});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(error.hint().find("setting 'image-shape'"), std::string::npos);
  }
}

TEST(Augment, OptionsOutOfTheirRangeAreNamed) {
  Augment options;
  check_augment(options);
  options.max_random_h = 181;
  EXPECT_THROW(check_augment(options), UsageError);
  options.max_random_h = 0;
  options.min_random_scale = 2;
  try {
    check_augment(options);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("setting 'min-random-scale'"), std::string::npos);
  }
}

}  // namespace
}  // namespace dtrain::data
