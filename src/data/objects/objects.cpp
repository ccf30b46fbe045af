#include <dtrain/data/objects.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>

#include "objects_block.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kBoxNumbers = 5;  // of each object's labels that are looked at

bool is_finite(const PixelBox& box) {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.width) && std::isfinite(box.height);
}

bool overlap(const PixelBox& a, const PixelBox& b) {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

// A pixel more on each side, since edges are drawn by hand.
PixelBox around(const std::vector<std::vector<double>>& polygons) {
  const PixelBox box = box_of_polygons(polygons);
  return {box.left - 1, box.top - 1, box.width + 2, box.height + 2};
}

std::optional<std::string> fault_of_polygons(const Annotation& object) {
  for (const auto& polygon : object.polygons) {
    if (auto fault = fault_of_corners(polygon)) return fault;
  }
  if (!overlap(around(object.polygons), object.box)) return "its mask lies outside of its box";
  return std::nullopt;
}

std::optional<std::string> fault_of_runs(const Annotation& object, int height, int width) {
  const Rle mask{height, width, object.runs};
  try {
    check_runs(mask);
  } catch (const DataError&) {
    return "its mask is for a picture of another size";
  }
  if (mask_area(mask) > 0 && !overlap(mask_box(mask), object.box)) return "its mask lies outside of its box";
  return std::nullopt;
}

Annotation object_of_labels(std::span<const float> numbers, std::uint64_t id, int height, int width) {
  Annotation object;
  for (const float value : numbers) {
    if (!std::isfinite(value)) throw DataError(fmt::format("the box {} holds {}", id, value));
  }
  if (numbers[0] != std::floor(numbers[0]) || std::abs(numbers[0]) > kLargestBoxClass)
    throw DataError(fmt::format("the box {} is of class {}, which is no whole number", id, numbers[0]));
  object.id = id;
  object.label = static_cast<std::int32_t>(numbers[0]);
  const double left = static_cast<double>(numbers[1]) * width, top = static_cast<double>(numbers[2]) * height;
  object.box = {left, top, static_cast<double>(numbers[3]) * width - left,
                static_cast<double>(numbers[4]) * height - top};
  object.area = object.box.area();
  return object;
}

// Without the rows that MXNet passes over.
Annotations annotations_of_labels(std::span<const float> labels, int height, int width) {
  Annotations annotations{height, width, {}};
  for (const std::span<const float> row : box_rows(labels)) {
    Annotation object = object_of_labels(row.first(kBoxNumbers), annotations.objects.size() + 1, height, width);
    if (object.label >= 0) annotations.objects.push_back(std::move(object));
  }
  return annotations;
}

void draw_mask(const Annotation& object, const Annotations& annotations, const ScaledSize& size,
               std::vector<std::uint8_t>& pixels) {
  if (object.polygons.empty()) {
    pixels = mask_at(mask_of(object, annotations.height, annotations.width), size);
    return;
  }
  pixels.resize(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width));
  Annotation scaled;
  scaled.polygons = object.polygons;
  const double across = static_cast<double>(size.width) / annotations.width,
               down = static_cast<double>(size.height) / annotations.height;
  for (auto& polygon : scaled.polygons) {
    for (std::size_t i = 0; i < polygon.size(); ++i) polygon[i] *= i % 2 == 0 ? across : down;
  }
  decode_mask(mask_of(scaled, size.height, size.width), pixels);
}

// A loader uses its buffers again and again, and each would come to hold the most that any picture needed: memory of
// more than twice the need is let go of.
void fill_with_zeros(std::vector<std::uint8_t>& values, std::size_t count) {
  if (values.capacity() > 2 * count) std::vector<std::uint8_t>().swap(values);
  values.assign(count, 0);
}

// One behind the other, each of the room's size. An object without a mask has no pixel.
void draw_masks(const std::vector<const Annotation*>& objects, const Annotations& annotations, const ScaledSize& size,
                bool mirrored, int room_height, int room_width, std::vector<std::uint8_t>& masks) {
  const std::ptrdiff_t room = std::ptrdiff_t{room_height} * room_width;
  fill_with_zeros(masks, objects.size() * static_cast<std::size_t>(room));
  std::vector<std::uint8_t> pixels;
  for (std::size_t k = 0; k < objects.size(); ++k) {
    if (!objects[k]->has_mask()) continue;
    draw_mask(*objects[k], annotations, size, pixels);
    for (int y = 0; y < size.height; ++y) {
      const auto row = pixels.begin() + std::ptrdiff_t{y} * size.width;
      const auto out = masks.begin() + static_cast<std::ptrdiff_t>(k) * room + std::ptrdiff_t{y} * room_width;
      if (mirrored) {
        std::reverse_copy(row, row + size.width, out);
      } else {
        std::copy(row, row + size.width, out);
      }
    }
  }
}

}  // namespace

PixelBox box_of_polygons(const std::vector<std::vector<double>>& polygons) {
  double left = HUGE_VAL, top = HUGE_VAL, right = -HUGE_VAL, bottom = -HUGE_VAL;
  for (const auto& polygon : polygons) {
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2) {
      left = std::min(left, polygon[i]);
      right = std::max(right, polygon[i]);
      top = std::min(top, polygon[i + 1]);
      bottom = std::max(bottom, polygon[i + 1]);
    }
  }
  return {left, top, right - left, bottom - top};
}

std::optional<std::string> fault_of(const Annotation& object, int height, int width) {
  if (!is_finite(object.box)) return "its box holds what is no number";
  if (!(object.box.width > 0 && object.box.height > 0)) return "its box has no area";
  if (!overlap(object.box, {0, 0, static_cast<double>(width), static_cast<double>(height)}))
    return "its box lies outside of the picture";
  if (!object.polygons.empty()) return fault_of_polygons(object);
  return object.runs.empty() ? std::nullopt : fault_of_runs(object, height, width);
}

// The whole picture has the sides 1. A box may cross its border, but pixels in place of shares lie far behind it.
std::optional<std::string> fault_of_row(std::span<const float> row) {
  constexpr float kMostOfPicture = 2;
  const std::span<const float> numbers = row.first(kBoxNumbers), sides = numbers.subspan(1);
  if (!std::ranges::all_of(numbers, [](float value) { return std::isfinite(value); }))
    return "its class or box holds what is no number";
  if (row[0] != std::floor(row[0])) return "its class is no whole number";
  if (row[0] < 0) return std::nullopt;
  if (row[0] > kLargestBoxClass) return "its class is too large";
  std::optional<std::string> fault = fault_of(object_of_labels(numbers, 0, 1, 1), 1, 1);
  if (!fault && std::ranges::any_of(sides, [](float side) { return std::abs(side) > kMostOfPicture; }))
    fault = "its box is far larger than the picture";
  if (fault && std::ranges::any_of(sides, [](float side) { return side > 1; }))
    *fault += "; sides are shares of the picture, 0 to 1, not pixels";
  return fault;
}

Rle mask_of(const Annotation& object, int height, int width) {
  if (!object.has_mask()) return empty_mask(height, width);
  if (object.polygons.empty()) {
    Rle mask{height, width, object.runs};
    check_runs(mask);
    return mask;
  }
  std::vector<Rle> parts;
  for (const auto& polygon : object.polygons) {
    if (const auto fault = fault_of_corners(polygon)) throw DataError("an object: " + *fault);
    parts.push_back(mask_of_polygon(polygon, height, width));
  }
  return united(parts);
}

// A mask has no values between pixels. They are looked up in the order of the runs, so that the mask is never held as
// pixels: its picture may be of any size.
std::vector<std::uint8_t> mask_at(const Rle& mask, const ScaledSize& size) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width));
  const auto nearest = [](int at, int from, int to) { return (2 * std::int64_t{at} + 1) * from / (2 * to); };
  std::size_t run = 0;
  auto end = static_cast<std::int64_t>(mask.runs.front());  // of the run
  std::int64_t before = -1;
  for (int x = 0; x < size.width; ++x) {
    const std::int64_t column = nearest(x, mask.w, size.width);
    for (int y = 0; y < size.height; ++y) {
      std::uint8_t& pixel = pixels[static_cast<std::size_t>(std::int64_t{y} * size.width + x)];
      if (column == before) {
        pixel = (&pixel)[-1];
        continue;
      }
      const std::int64_t at = column * mask.h + nearest(y, mask.h, size.height);
      while (at >= end && run + 1 < mask.runs.size()) end += mask.runs[++run];
      pixel = run % 2 == 1 ? 1 : 0;
    }
    before = column;
  }
  return pixels;
}

// Two pixels of rounding and a fiftieth.
bool is_same_shape(const ScaledSize& annotated, int height, int width) {
  const double there = static_cast<double>(annotated.height) * width,
               here = static_cast<double>(annotated.width) * height;
  const double rounding = 2.0 * std::max(annotated.height, annotated.width);
  return std::abs(there - here) <= rounding + 0.02 * std::max(there, here);
}

void require_same_shape(const ScaledSize& annotated, int height, int width) {
  if (is_same_shape(annotated, height, width)) return;
  throw DataError(fmt::format("its picture is of {}x{} pixels, and its objects are of a picture of {}x{}", width,
                              height, annotated.width, annotated.height),
                  "pack the pictures again with the annotations that belong to them");
}

Annotations annotations_of(const Record& record, int height, int width) {
  if (!record.objects.empty()) {
    Annotations annotations = read_objects_block(record.objects);
    require_same_shape({annotations.height, annotations.width}, height, width);
    return annotations;
  }
  if (has_boxes(record.labels)) return annotations_of_labels(record.labels, height, width);
  throw DataError("the record has a class for its whole picture and no boxes",
                  "a detector trains on boxes: pack the pictures with setting 'coco-labels' boxes");
}

std::size_t group_for(int height, int width, std::span<const ScaledSize> groups) {
  DTRAIN_CHECK(!groups.empty(), "a picture has a group");
  const auto scale_in = [&](const ScaledSize& room) {
    return std::min(static_cast<double>(room.height) / height, static_cast<double>(room.width) / width);
  };
  const auto area = [](const ScaledSize& room) { return std::int64_t{room.height} * room.width; };
  std::size_t best = 0;
  for (std::size_t group = 1; group < groups.size(); ++group) {
    const double here = scale_in(groups[group]), there = scale_in(groups[best]);
    if (here > there || (here == there && area(groups[group]) < area(groups[best]))) best = group;
  }
  return best;
}

ScaledSize picture_size(const Record& record, Image& scratch) {
  if (!record.objects.empty()) return annotated_size(record.objects);
  decode_image(record.payload, kStoredChannels, scratch);
  return {scratch.h, scratch.w};
}

ScaledSize scaled_size(int height, int width, const DetectionInput& options, int room_height, int room_width) {
  if (!options.groups.empty()) {
    const ScaledSize& room = options.groups[group_for(height, width, options.groups)];
    room_height = std::min(room_height, room.height);
    room_width = std::min(room_width, room.width);
  }
  double scale = std::min(static_cast<double>(room_height) / height, static_cast<double>(room_width) / width);
  if (options.shorter_edge > 0)
    scale = std::min(scale, static_cast<double>(options.shorter_edge) / std::min(height, width));
  if (options.longest_edge > 0)
    scale = std::min(scale, static_cast<double>(options.longest_edge) / std::max(height, width));
  const auto side = [&](int length, int room) { return std::clamp(static_cast<int>(length * scale + 0.5), 1, room); };
  return {side(height, room_height), side(width, room_width)};
}

void scale_objects(const Annotations& annotations, const ScaledSize& size, bool mirrored, const DetectionInput& wanted,
                   int room_height, int room_width, nn::PictureObjects& objects) {
  const double across = static_cast<double>(size.width) / annotations.width,
               down = static_cast<double>(size.height) / annotations.height;
  objects.boxes.clear();
  objects.classes.clear();
  objects.crowd.clear();
  objects.areas.clear();
  objects.annotated.clear();
  objects.runs.clear();
  objects.height = size.height;
  objects.width = size.width;
  objects.scale = static_cast<float>(across);
  objects.original_height = annotations.height;
  objects.original_width = annotations.width;
  std::vector<const Annotation*> kept;
  for (const Annotation& object : annotations.objects) {
    const auto inside = [](double at, int end) { return static_cast<float>(std::clamp(at, 0.0, double(end))); };
    nn::Box box{inside(object.box.left * across, size.width), inside(object.box.top * down, size.height),
                inside((object.box.left + object.box.width) * across, size.width),
                inside((object.box.top + object.box.height) * down, size.height)};
    if (!(box.left < box.right && box.top < box.bottom)) continue;
    if (mirrored) {
      const auto edge = static_cast<float>(size.width);
      box = {edge - box.right, box.top, edge - box.left, box.bottom};
    }
    objects.boxes.push_back(box);
    objects.classes.push_back(object.label);
    objects.crowd.push_back(object.crowd ? 1 : 0);
    objects.areas.push_back(object.area);
    objects.annotated.push_back({object.box.left, object.box.top, object.box.width, object.box.height});
    if (wanted.runs) objects.runs.push_back(mask_of(object, annotations.height, annotations.width).runs);
    if (wanted.masks) kept.push_back(&object);
  }
  draw_masks(kept, annotations, size, mirrored, room_height, room_width, objects.masks);
}

}  // namespace dtrain::data
