#include "mxnet_params.hpp"

#include <fmt/format.h>

#include <cstring>
#include <unordered_set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/float16.hpp>

#include "byte_reader.hpp"

namespace dtrain::train {
namespace {

constexpr std::uint64_t kListMagic = 0x112;
constexpr std::uint32_t kVersion1 = 0xf993fac8;  // 64-bit extents
constexpr std::uint32_t kVersion2 = 0xf993fac9;  // and a storage type
constexpr std::uint32_t kVersion3 = 0xf993faca;  // and numpy's meaning of an empty shape
constexpr std::uint32_t kMostExtents = 32;
constexpr std::uint64_t kSmallestArray = 20;  // rank, one extent, device, type
constexpr std::int32_t kDense = 0;
constexpr std::int32_t kCpu = 1;

enum class TypeFlag : std::int32_t { float32 = 0, float64 = 1, float16 = 2 };

template <typename Extent>
std::vector<std::int64_t> read_extents(ByteReader& reader, std::uint32_t rank) {
  if (rank > kMostExtents) reader.fail(fmt::format("an array of {} dimensions", rank));
  std::vector<std::int64_t> shape(rank);
  for (std::int64_t& extent : shape) {
    extent = static_cast<std::int64_t>(reader.number<Extent>());
    if (extent < 0) reader.fail(fmt::format("an extent of {}", extent));
  }
  return shape;
}

// The oldest version has no magic: its first number is the rank, its extents have 32 bits.
std::vector<std::int64_t> read_shape(ByteReader& reader) {
  const auto magic = reader.number<std::uint32_t>();
  if (magic == kVersion2 || magic == kVersion3) {
    const auto storage = reader.number<std::int32_t>();
    if (storage != kDense) reader.fail(fmt::format("a sparse array (storage type {}) cannot be read", storage));
  }
  if (magic == kVersion1 || magic == kVersion2 || magic == kVersion3) {
    return read_extents<std::int64_t>(reader, reader.number<std::uint32_t>());
  }
  return read_extents<std::uint32_t>(reader, magic);
}

std::uint64_t element_count(const ByteReader& reader, const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count))
      reader.fail("an array beyond memory");
  }
  return count;
}

template <typename Stored, typename Convert>
std::vector<float> read_values(ByteReader& reader, std::uint64_t count, Convert convert) {
  if (count > ~std::uint64_t{0} / sizeof(Stored)) reader.fail("an array beyond memory");
  const ByteView bytes = reader.take(count * sizeof(Stored));
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

MxnetArray read_array(ByteReader& reader) {
  MxnetArray array;
  array.shape = read_shape(reader);
  if (array.shape.empty()) reader.fail("an array without a shape");
  reader.take(8);  // the device it was on
  const auto type = reader.number<std::int32_t>();
  const std::uint64_t count = element_count(reader, array.shape);
  switch (static_cast<TypeFlag>(type)) {
    case TypeFlag::float32:
      array.values = read_values<float>(reader, count, [](float v) { return v; });
      break;
    case TypeFlag::float64:
      array.values = read_values<double>(reader, count, [](double v) { return static_cast<float>(v); });
      break;
    case TypeFlag::float16:
      array.values = read_values<std::uint16_t>(reader, count, from_float16);
      break;
    default:
      reader.fail(fmt::format("values of MXNet's type {} cannot be read", type));
  }
  return array;
}

template <typename Number>
void write_number(AtomicFile& file, Number value) {
  file.write(std::as_bytes(std::span(&value, 1)));
}

void write_array(AtomicFile& file, const NamedTensor& tensor) {
  write_number(file, kVersion2);
  write_number(file, kDense);
  write_number(file, static_cast<std::uint32_t>(tensor.shape.size()));
  for (std::int64_t extent : tensor.shape) write_number(file, extent);
  write_number(file, kCpu);
  write_number(file, std::int32_t{0});  // device number
  write_number(file, TypeFlag::float32);
  file.write(std::as_bytes(tensor.values));
}

}  // namespace

void write_mxnet_params(AtomicFile& file, std::span<const NamedTensor> tensors) {
  write_number(file, kListMagic);
  write_number(file, std::uint64_t{0});
  write_number(file, std::uint64_t{tensors.size()});
  for (const NamedTensor& tensor : tensors) write_array(file, tensor);
  write_number(file, std::uint64_t{tensors.size()});
  for (const NamedTensor& tensor : tensors) {
    write_number(file, std::uint64_t{tensor.name.size()});
    file.write(tensor.name);
  }
}

bool is_mxnet_params(ByteView file) {
  std::uint64_t magic = 0;
  if (file.size() < sizeof magic) return false;
  std::memcpy(&magic, file.data(), sizeof magic);
  return magic == kListMagic;
}

std::vector<MxnetArray> parse_mxnet_params(ByteView file, std::string_view source) {
  ByteReader reader(file, source, "the file is damaged, cut short or not a .params file of MXNet 1.x");
  if (reader.number<std::uint64_t>() != kListMagic) reader.fail("not a list of MXNet arrays");
  reader.number<std::uint64_t>();  // reserved
  std::vector<MxnetArray> arrays;
  for (std::uint64_t left = reader.count(kSmallestArray); left > 0; --left) arrays.push_back(read_array(reader));
  const std::uint64_t names = reader.count(8);
  if (names != arrays.size()) reader.fail(fmt::format("{} names for {} arrays", names, arrays.size()));
  std::unordered_set<std::string> taken;
  for (MxnetArray& array : arrays) {
    array.name = text_of(reader.take(reader.number<std::uint64_t>()));
    if (!taken.insert(array.name).second) reader.fail(fmt::format("two arrays have the name '{}'", array.name));
  }
  if (!reader.done()) reader.fail("bytes after the end");
  return arrays;
}

}  // namespace dtrain::train
