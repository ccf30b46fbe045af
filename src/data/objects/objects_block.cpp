// The objects of a record as bytes.
#include <fmt/format.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/data/objects.hpp>

#include "codec/bytes.hpp"
#include "objects_block.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHead = 12;  // magic, version, checksum

enum class MaskKind : std::uint8_t { none, polygons, runs };

MaskKind mask_kind(const Annotation& object) {
  if (!object.polygons.empty()) return MaskKind::polygons;
  return object.runs.empty() ? MaskKind::none : MaskKind::runs;
}

void append_object(std::string& out, const Annotation& object) {
  append(out, object.id);
  append(out, object.label);
  append(out, static_cast<std::uint8_t>(object.crowd));
  append(out, mask_kind(object));
  append(out, std::uint16_t{0});
  for (const double value : {object.box.left, object.box.top, object.box.width, object.box.height, object.area})
    append(out, value);
  if (mask_kind(object) == MaskKind::polygons) {
    append(out, static_cast<std::uint32_t>(object.polygons.size()));
    for (const auto& polygon : object.polygons) {
      append(out, static_cast<std::uint32_t>(polygon.size()));
      for (const double value : polygon) append(out, value);
    }
  } else if (mask_kind(object) == MaskKind::runs) {
    append(out, static_cast<std::uint32_t>(object.runs.size()));
    for (const std::uint32_t run : object.runs) append(out, run);
  }
}

[[noreturn]] void refuse_objects(const std::string& what) {
  throw DataError("the record's objects: " + what, "the file is damaged: copy or prepare it again");
}

ScaledSize checked_size(std::uint32_t height, std::uint32_t width) {
  if (height < 1 || width < 1 || height > kMostObjectsSide || width > kMostObjectsSide)
    refuse_objects(fmt::format("a picture of {}x{} pixels", height, width));
  return {static_cast<int>(height), static_cast<int>(width)};
}

class BlockReader {
 public:
  explicit BlockReader(ByteView bytes) : bytes_(bytes) {}

  template <typename T>
  T read() {
    if (bytes_.size() - at_ < sizeof(T)) refuse_objects("they are cut short");
    const T value = load<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }

  template <typename T>
  std::vector<T> read_list() {
    const auto count = read<std::uint32_t>();
    if ((bytes_.size() - at_) / sizeof(T) < count) refuse_objects("they are cut short");
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }

  bool at_end() const { return at_ == bytes_.size(); }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

Annotation read_object(BlockReader& reader) {
  Annotation object;
  object.id = reader.read<std::uint64_t>();
  object.label = reader.read<std::int32_t>();
  object.crowd = reader.read<std::uint8_t>() != 0;
  const auto kind = reader.read<MaskKind>();
  reader.read<std::uint16_t>();
  for (double* value : {&object.box.left, &object.box.top, &object.box.width, &object.box.height, &object.area})
    *value = reader.read<double>();
  if (kind == MaskKind::polygons) {
    for (auto left = reader.read<std::uint32_t>(); left > 0; --left)
      object.polygons.push_back(reader.read_list<double>());
  } else if (kind == MaskKind::runs) {
    object.runs = reader.read_list<std::uint32_t>();
  } else if (kind != MaskKind::none) {
    refuse_objects(fmt::format("a mask is of unknown kind {}", static_cast<int>(kind)));
  }
  return object;
}

}  // namespace

bool begins_objects(ByteView bytes) { return text_of(bytes).starts_with(kObjectsMagic) && bytes.size() > kHead; }

std::string objects_block(const Annotations& annotations) {
  std::string content;
  append(content, static_cast<std::uint32_t>(annotations.height));
  append(content, static_cast<std::uint32_t>(annotations.width));
  append(content, static_cast<std::uint32_t>(annotations.objects.size()));
  for (const Annotation& object : annotations.objects) append_object(content, object);
  std::string block(kObjectsMagic);
  append(block, std::uint32_t{kVersion});
  append(block, crc32c(bytes_of(content)));
  return block + content;
}

ScaledSize annotated_size(ByteView block) {
  if (!begins_objects(block)) refuse_objects("they do not begin as objects do");
  BlockReader reader(block.subspan(kHead));
  const auto height = reader.read<std::uint32_t>(), width = reader.read<std::uint32_t>();
  return checked_size(height, width);
}

Annotations read_objects_block(ByteView block) {
  if (!begins_objects(block)) refuse_objects("they do not begin as objects do");
  BlockReader head(block.subspan(kObjectsMagic.size()));
  if (const auto version = head.read<std::uint32_t>(); version != kVersion) {
    throw DataError(fmt::format("the record's objects are of version {}, and this dtrain reads {}", version, kVersion),
                    "read the file with the dtrain that made it, or a newer one");
  }
  if (head.read<std::uint32_t>() != crc32c(block.subspan(kHead))) refuse_objects("they differ from their checksum");
  BlockReader reader(block.subspan(kHead));
  const auto height = reader.read<std::uint32_t>(), width = reader.read<std::uint32_t>();
  const ScaledSize size = checked_size(height, width);
  Annotations annotations{size.height, size.width, {}};
  for (auto left = reader.read<std::uint32_t>(); left > 0; --left) annotations.objects.push_back(read_object(reader));
  if (!reader.at_end()) refuse_objects("there are bytes behind them");
  return annotations;
}

std::vector<float> detection_labels(const Annotations& annotations, std::size_t block_bytes) {
  constexpr std::size_t kMostBytes = 1 << 24;  // that a label can count
  if (block_bytes > kMostBytes) {
    throw DataError(fmt::format("the objects of a picture take {} bytes, more than {}", block_bytes, kMostBytes),
                    "use fewer or simpler masks in this picture");
  }
  const double width = annotations.width, height = annotations.height;
  std::vector<float> labels{3, 5, static_cast<float>(block_bytes)};
  const auto add = [&](std::int32_t label, const PixelBox& box) {
    labels.push_back(static_cast<float>(label));
    for (const double value :
         {box.left / width, box.top / height, (box.left + box.width) / width, (box.top + box.height) / height}) {
      labels.push_back(static_cast<float>(value));
    }
  };
  for (const Annotation& object : annotations.objects) {
    if (!object.crowd) add(object.label, object.box);
  }
  if (labels.size() == 3) add(-1, {0, 0, width, height});
  return labels;
}

bool has_boxes(std::span<const float> labels) {
  constexpr float kMostWidth = 1000;
  constexpr std::size_t kLeast = 7;
  if (labels.size() < kLeast) return false;
  const float header = labels[0], object = labels[1];
  const auto counts = [](float value) { return value == std::floor(value) && value <= kMostWidth; };
  if (!(header >= 2 && object >= 5) || !counts(header) || !counts(object)) return false;
  const auto begin = static_cast<std::size_t>(header), width = static_cast<std::size_t>(object);
  return labels.size() >= begin + width && (labels.size() - begin) % width == 0;
}

std::vector<std::span<const float>> box_rows(std::span<const float> labels) {
  std::vector<std::span<const float>> rows;
  const auto width = static_cast<std::size_t>(labels[1]);
  for (auto at = static_cast<std::size_t>(labels[0]); at < labels.size(); at += width)
    rows.push_back(labels.subspan(at, width));
  return rows;
}

std::vector<std::int32_t> box_classes(std::span<const float> labels) {
  std::vector<std::int32_t> classes;
  for (const std::span<const float> row : box_rows(labels)) {
    if (row[0] >= 0 && row[0] <= kLargestBoxClass) classes.push_back(static_cast<std::int32_t>(row[0]));
  }
  return classes;
}

}  // namespace dtrain::data
