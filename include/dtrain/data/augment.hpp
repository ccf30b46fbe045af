// One pass from a decoded image to normalised floats. Random choices are a pure function of (seed, epoch, sample id),
// and only whole-number and IEEE arithmetic is used, so the pixels are the same on every CPU.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/base/random.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/pixels.hpp>

namespace dtrain::data {

// Operations drawn for each sample. trivial: one of random strength (TrivialAugment Wide). rand: some of one strength
// (RandAugment). imagenet: one of the pairs that AutoAugment found for ImageNet.
enum class AutoAugment { none, trivial, rand, imagenet };
// What an erased rectangle becomes: pixel: noise of mean 0 and variance 1; rand: one such colour; zero: 0, which is the
// mean.
enum class ErasingMode { pixel, rand, zero };
inline constexpr int kStrongestAugment = 30;  // strengths are whole numbers from 0 on

// MXNet's ImageRecordIter options with their names, meaning and order: resize, warp (rotate, shear, scale, aspect),
// pad, crop, HSL jitter, brightness, contrast and saturation, mirror, normalise. Ours: the operations of auto_augment
// and then pca_noise before normalise, and cutout and random erasing at the end.
struct Augment {
  int resize = 0;            // pixels that the shorter edge gets first; 0: it stays
  int pad_size = 0;          // pixels of fill_value added on each side before cropping
  int fill_value = 127;      // also what a warp sees outside the image
  bool reflect_pad = false;  // the padding shows the picture mirrored at its outermost pixels instead
  bool random_crop = false;  // else the centre
  bool random_mirror = false;
  // With random_mirror: a coin decides for epoch 0 only, then each odd epoch mirrors what the even ones do not, so that
  // two epochs show every image both ways.
  bool alternate_mirror = false;
  // A window of random area (a share of the picture's) and aspect (width to height, or the other way round by a coin),
  // resized to the output, instead of resize, scale, aspect and crop, behind rotation, shear and padding. Its
  // aspect is drawn from [min_random_aspect_ratio, max_random_aspect_ratio] if the first is above 0, else from 1 +-
  // max_random_aspect_ratio if that is, else from [3/4, 4/3].
  bool random_resized_crop = false;
  float min_random_area = 0.08f, max_random_area = 1, min_random_aspect_ratio = 0;
  // Jitter in OpenCV's 8-bit HLS: a whole number in [-max, max] is added to each, hue in 0..180 (2 degrees a unit), the
  // others in 0..255, and cut off at those ends. A grey image takes the lightness only.
  int max_random_h = 0, max_random_s = 0, max_random_l = 0;
  // Factors are drawn from 1 +- these, and the three come in a random order, as torchvision's ColorJitter on pictures
  // of Pillow: a factor of 0 is black, the mean grey of the picture, or its greys.
  float brightness = 0, contrast = 0, saturation = 0;
  float max_random_rotate_angle = 0;                 // degrees; whole ones are drawn from [-max, max]
  float max_random_aspect_ratio = 0;                 // drawn from [1 - max, 1 + max]
  float max_random_shear_ratio = 0;                  // drawn from [-max, max]
  float max_random_scale = 1, min_random_scale = 1;  // the image's size is multiplied by one drawn between them
  AutoAugment auto_augment = AutoAugment::none;
  int rand_augment_ops = 2, rand_augment_magnitude = 9;
  // The side of a square that becomes 0, which is the mean, as DeVries and Taylor do it ("Improved Regularization of
  // Convolutional Neural Networks with Cutout", 2017): its middle is any pixel, so that it may be cut off at the edge.
  int cutout = 0;
  float pca_noise = 0;       // deviation of the shares
  float random_erasing = 0;  // probability
  ErasingMode erasing_mode = ErasingMode::pixel;
  // For detectors: the shorter edge in pixels, drawn for each picture as torchvision draws min_size; empty: as large as
  // fits. A picture is never larger than the network's input, and stands in it as without.
  std::vector<int> min_size_train = {};
  std::array<float, 3> mean{};        // --rgb-mean; subtracted
  std::array<float, 3> std{1, 1, 1};  // divided by
};

// The fields' ranges; that of max_random_aspect_ratio ends at kMostAspectChange without
// min_random_aspect_ratio, which random_resized_crop has.
struct AugmentRanges {
  ValueRange resize = between(0, kMostShorterEdge), min_size_train = between(1, kMostShorterEdge);
  ValueRange pad_size = between(0, 4096), fill_value = between(0, 255);
  ValueRange random_area = between(1e-4, 1), random_aspect_ratio = between(0, 100);
  ValueRange max_random_h = between(0, 180), max_random_s = between(0, 255), max_random_l = between(0, 255);
  ValueRange max_random_rotate_angle = between(0, 360), max_random_shear_ratio = between(0, 10);
  ValueRange random_scale = between(0.01, 100), cutout = between(0, 65500);
  ValueRange color = between(0, 1), pca_noise = between(0, 10), random_erasing = between(0, 1);
  ValueRange rand_augment_ops = between(1, 14), rand_augment_magnitude = between(0, kStrongestAugment);
  ValueRange mean = between(-1e6, 1e6), std = between(1e-6, 1e6);
};
inline constexpr AugmentRanges kAugmentRanges;
inline constexpr double kMostAspectChange = 0.99;

// Throws SettingError that names the first field out of its range.
void check_augment(const Augment& options);

struct SampleKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t sample = 0;  // position of the record in its set
  std::uint32_t copy = 0;    // of a record that comes more than once in an epoch
  RandomStream stream(RandomUse use) const;
};

// Pixels are resized by taking the mean between the two nearest ones, or over all that an output pixel covers where the
// reduction is by more than 2.

// Writes shape.c * shape.h * shape.w floats, planes in RGB order. An image smaller than the crop after padding is
// resized up until it covers it, keeping its aspect; a larger one is cropped, never shrunk. Throws DataError when
// image.c != shape.c. The options must have passed check_augment(). Any thread; allocates nothing.
void augment(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
             std::span<float> out);

// Decodes one record's payload and augments it. Where a window of a JPEG is all that is wanted, only that is decoded,
// and at 1/2, 1/4 or 1/8 of its size as long as it stays as large as the output: then pixels are near those of
// decode_image() and augment(), at full size they are the same. Other payloads go through `scratch`. Any thread.
void decode_and_augment(ByteView payload, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                        Image& scratch, std::span<float> out);

// The same as bytes, for a backend that normalises later.
nn::PixelScale pixel_scale(const Augment& options);
// The shape in which to store pictures like this one, of shape.c channels: as it is where padding, cropping and
// mirroring are all that is asked for and it is not much larger than the output, else the output's.
nn::Shape stored_shape(ByteView payload, const Augment& options, const nn::Shape& shape);
// Writes stored.size() bytes [h, w, c] and returns where the output lies in them. `stored` is no smaller than `shape`.
// nn::pixel_value() of the first gives augment()'s floats, bit for bit, and of the second decode_and_augment()'s.
nn::PixelPlace augment_to_bytes(const Image& image, const Augment& options, const SampleKey& key,
                                const nn::Shape& shape, const nn::Shape& stored, std::span<std::uint8_t> out);
nn::PixelPlace decode_to_bytes(ByteView payload, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                               const nn::Shape& stored, Image& scratch, std::span<std::uint8_t> out);

}  // namespace dtrain::data
