#include "safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeSize {
  std::string_view name;
  std::uint64_t bytes;
};
// Those of whole bytes.
constexpr std::array<DTypeSize, 17> kDTypes = {{{"C64", 8},
                                                {"F64", 8},
                                                {"I64", 8},
                                                {"U64", 8},
                                                {"F32", 4},
                                                {"I32", 4},
                                                {"U32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I16", 2},
                                                {"U16", 2},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1},
                                                {"F8_E8M0", 1},
                                                {"I8", 1},
                                                {"U8", 1},
                                                {"BOOL", 1}}};

// The bytes of a tensor, or 0xff..ff where that does not fit 64 bits: no file is that long.
std::uint64_t byte_size(const SafetensorsEntry& entry) {
  constexpr std::uint64_t too_large = ~std::uint64_t{0};
  std::uint64_t size = dtype_bytes(entry.dtype);
  if (size == 0) throw DataError(fmt::format("the dtype '{}' is unknown", entry.dtype));
  for (std::int64_t extent : entry.shape) {
    if (extent < 0) throw DataError(fmt::format("an extent of {}", extent));
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size)) return too_large;
  }
  return size;
}

std::uint64_t offset_from(const Json& value) {
  if (value.as_integer() < 0) throw DataError(fmt::format("an offset of {}", value.as_integer()));
  return static_cast<std::uint64_t>(value.as_integer());
}

// Offsets in the header count from the end of the header, `base`.
SafetensorsEntry entry_from(const std::string& name, const Json& json, std::uint64_t base, std::uint64_t file_size) {
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = json.at("dtype").as_string();
  for (const Json& extent : json.at("shape").as_array()) entry.shape.push_back(extent.as_integer());
  const Json::Array& offsets = json.at("data_offsets").as_array();
  if (offsets.size() != 2) throw DataError("data_offsets must be two numbers");
  const std::uint64_t begin = offset_from(offsets[0]), end = offset_from(offsets[1]);
  const std::uint64_t available = file_size - base;
  if (begin > end || end > available) {
    throw DataError(fmt::format("it should lie at bytes {} to {} of {} bytes of tensors", begin, end, available));
  }
  entry.begin = base + begin;
  entry.end = base + end;
  if (byte_size(entry) != end - begin) {
    throw DataError(
        fmt::format("{} bytes do not hold {} of shape [{}]", end - begin, entry.dtype, fmt::join(entry.shape, ", ")));
  }
  return entry;
}

std::uint64_t header_length(ByteView file, std::string_view source) {
  if (file.size() < kLengthBytes) throw DataError(fmt::format("{}: not a safetensors file: too short", source));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kLargestHeader || length > file.size() - kLengthBytes) {
    throw DataError(
        fmt::format("{}: a header of {} bytes does not fit the file of {} bytes", source, length, file.size()),
        "the file is damaged, cut short or not in the safetensors format");
  }
  return length;
}

Json header_of(ByteView file, std::string_view source) {
  Json header = Json::parse(text_of(file.subspan(kLengthBytes, header_length(file, source))), source);
  if (!header.is_object()) throw DataError(fmt::format("{}: the header is not a JSON object", source));
  return header;
}

void check_no_gaps(const std::vector<SafetensorsEntry>& entries, std::uint64_t first, std::uint64_t last,
                   std::string_view source) {
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != first) {
      throw DataError(fmt::format("{}: tensor '{}' begins at byte {}, not where the one before it ends ({})", source,
                                  entry.name, entry.begin, first));
    }
    first = entry.end;
  }
  if (first != last) {
    throw DataError(fmt::format("{}: {} bytes after the last tensor", source, last - first),
                    "the file is damaged or was not written completely");
  }
}

}  // namespace

std::string safetensors_header(std::span<const NamedTensor> tensors, const Json& metadata) {
  Json document = Json::object();
  if (!metadata.is_null()) document[kMetadata] = metadata;
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::int64_t end = offset + static_cast<std::int64_t>(tensor.values.size_bytes());
    const Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    document[tensor.name] = Json::object(
        {{"dtype", "F32"}, {"shape", Json(shape)}, {"data_offsets", Json::array({Json(offset), Json(end)})}});
    offset = end;
  }
  std::string text = document.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string header(kLengthBytes, '\0');
  std::memcpy(header.data(), &length, kLengthBytes);
  return header + text;
}

void write_safetensors(AtomicFile& file, std::string_view header, std::span<const NamedTensor> tensors) {
  file.write(header);
  for (const NamedTensor& tensor : tensors) file.write(std::as_bytes(tensor.values));
}

std::uint64_t dtype_bytes(std::string_view dtype) {
  const auto* found = std::ranges::find(kDTypes, dtype, &DTypeSize::name);
  return found == kDTypes.end() ? 0 : found->bytes;
}

Json export_metadata(ByteView file, std::string_view source) {
  const Json header = header_of(file, source);
  const Json* metadata = header.find(kMetadata);
  const bool is_export =
      metadata && metadata->is_object() && metadata->find(kExportedNetwork) && metadata->find(kExportedPreprocessing);
  return is_export ? *metadata : Json();
}

std::vector<SafetensorsEntry> parse_safetensors(ByteView file, std::string_view source) {
  const std::uint64_t base = kLengthBytes + header_length(file, source);
  const Json header = header_of(file, source);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, value] : header.as_object()) {
    if (name == kMetadata) continue;
    try {
      entries.push_back(entry_from(name, value, base, file.size()));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: tensor '{}': {}", source, name, error.what()), error.hint());
    }
  }
  std::ranges::stable_sort(entries, {}, [](const SafetensorsEntry& e) { return std::pair(e.begin, e.end); });
  check_no_gaps(entries, base, file.size(), source);
  return entries;
}

SafetensorsFile::SafetensorsFile(const Path& path)
    : file_(path), whole_(file_.bytes()), entries_(parse_safetensors(whole_, path.string())) {}

SafetensorsFile::SafetensorsFile(std::vector<std::byte> content, const Path& name)
    : content_(std::move(content)), whole_(content_), entries_(parse_safetensors(whole_, name.string())) {}

ByteView SafetensorsFile::header() const { return whole_.first(kLengthBytes + header_length(whole_, "header")); }

ByteView SafetensorsFile::data() const { return whole_.subspan(header().size()); }

ByteView SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return whole_.subspan(entry.begin, entry.end - entry.begin);
}

}  // namespace dtrain::train
