#include "detection_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "augment/augment_draws.hpp"
#include "augment/augment_steps.hpp"
#include "augment/source_window.hpp"
#include "augment/window_pixels.hpp"

namespace dtrain::data {
namespace {

// Writes the picture, resized and normalised, in the left upper corner of the planes, and 0 around it.
void fill_corner(const Image& image, const ScaledSize& size, const Augment& augment, const nn::Shape& room,
                 const Draws& draws, std::span<float> out) {
  thread_local std::vector<float> planes;
  const nn::Shape corner{room.c, size.height, size.width};
  planes.resize(static_cast<std::size_t>(corner.size()));
  SourceWindow whole{{0, static_cast<double>(image.h), 0, image.h}, {0, static_cast<double>(image.w), 0, image.w}};
  whole.mirror = draws.mirrors(augment);
  fill_from_image(image, whole, augment, corner, planes.data());
  if (changes_pixels(augment)) {
    change_pixels(augment, draws, corner, planes.data());
    normalise(augment, corner, planes.data());
  }
  std::ranges::fill(out, 0.0f);
  const float* from = planes.data();
  for (int c = 0; c < room.c; ++c) {
    float* to = out.data() + std::ptrdiff_t{c} * room.h * room.w;
    for (int y = 0; y < size.height; ++y, from += size.width, to += room.w) std::copy_n(from, size.width, to);
  }
}

void check_objects(const Annotations& annotations, const std::string& where, const LoaderOptions& options) {
  for (const Annotation& object : annotations.objects) {
    const PixelBox& box = object.box;
    for (const double side : {box.left, box.top, box.width, box.height}) {
      if (!std::isfinite(side)) throw DataError(fmt::format("a box of the picture holds {}", side));
    }
    if (object.label < 0 || object.label >= options.classes) {
      throw UnfitRecord(
          fmt::format("{} shows an object of class {}, outside 0 to {}", where, object.label, options.classes - 1),
          hint_of_label(options.classes, options.has_fixed_classes));
    }
    if (options.detection->any_masks() && !object.has_mask()) {
      throw UnfitRecord(fmt::format("{} has a box without the mask that this network {}", where,
                                    options.detection->masks ? "learns from" : "is judged by"),
                        "take a network of boxes alone (setting 'network' faster-rcnn or retinanet), or pack the "
                        "pictures with annotations that have masks");
    }
  }
}

}  // namespace

void check_detection(const LoaderOptions& options) {
  const Augment& augment = options.augment;
  const auto refuse = [](bool chosen, const char* setting) {
    if (!chosen) return;
    throw SettingError(setting, "moves or cuts a picture's boxes, which a detector's pictures do not allow",
                       "leave it out; detectors train with setting 'random-mirror' and changes of colour");
  };
  refuse(augment.pad_size > 0, "pad-size");
  refuse(augment.random_resized_crop, "random-resized-crop");
  refuse(augment.max_random_rotate_angle != 0, "max-random-rotate-angle");
  refuse(augment.max_random_shear_ratio != 0, "max-random-shear-ratio");
  refuse(augment.max_random_aspect_ratio != 0, "max-random-aspect-ratio");
  refuse(augment.max_random_scale != 1, "max-random-scale");
  refuse(augment.min_random_scale != 1, "min-random-scale");
  refuse(augment.auto_augment != AutoAugment::none, "auto-augment");
  refuse(augment.cutout > 0, "cutout");
  refuse(augment.resize > 0, "resize");
}

void refuse_kind(const std::string& place, const LoaderOptions& options) {
  if (!options.detection) {
    throw UnfitRecord(place + " has boxes for object detection in place of a class",
                      "train a detector on it (setting 'network' retinanet), or make the records with setting "
                      "'coco-labels' largest to train on the category of the largest box");
  }
  throw UnfitRecord(place + " has a class for the whole picture and no boxes, which a detector learns from",
                    "train a classifier on it (setting 'network' resnet), or pack the pictures with boxes: setting "
                    "'coco'");
}

// The word that draws the scale of a classifier's picture draws the size of a detector's.
static DetectionInput drawn_input(const LoaderOptions& options, const Draws& draws) {
  DetectionInput input = *options.detection;
  const std::vector<int>& sizes = options.augment.min_size_train;
  if (!sizes.empty())
    input.shorter_edge = sizes[static_cast<std::size_t>(draws.scale.below(static_cast<int>(sizes.size())))];
  if (options.in_groups()) input.groups.clear();  // the batch's group is that of the record's turn
  return input;
}

void read_detection(const Record& record, const Image& picture, const std::string& place, const LoaderOptions& options,
                    const SampleKey& key, const SampleSlot& out) {
  if (!is_of_kind(record, options)) refuse_kind(place, options);
  const Annotations annotations = annotations_of(record, picture.h, picture.w);
  check_objects(annotations, fmt::format("{} (picture {})", place, record.id), options);
  const Draws draws(key);
  const DetectionInput wanted = drawn_input(options, draws);
  const nn::Shape& room = out.shape;
  const ScaledSize size = scaled_size(picture.h, picture.w, wanted, room.h, room.w);
  fill_corner(picture, size, options.augment, room, draws, out.image);
  scale_objects(annotations, size, draws.mirrors(options.augment), wanted, room.h, room.w, *out.objects);
}

nn::Shape decode_whole(ByteView content, const Augment& augment, const DetectionInput& wanted, const nn::Shape& room,
                       bool in_group, Image& scratch, std::vector<float>& out, nn::PictureObjects& picture) {
  decode_image(content, room.c, scratch);
  const ScaledSize size = scaled_size(scratch.h, scratch.w, wanted, room.h, room.w);
  nn::Shape shape = room;
  if (in_group) {
    const ScaledSize& group = wanted.groups.at(group_for(scratch.h, scratch.w, wanted.groups));
    shape = {room.c, group.height, group.width};
  }
  out.resize(static_cast<std::size_t>(shape.size()));
  fill_corner(scratch, size, augment, shape, Draws(SampleKey{}), out);
  scale_objects({.height = scratch.h, .width = scratch.w, .objects = {}}, size, false, {}, shape.h, shape.w, picture);
  return shape;
}

}  // namespace dtrain::data
