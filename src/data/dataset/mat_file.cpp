// MATLAB's level 5 MAT-files ("MAT-File Format", The MathWorks, 2023), as far as ImageNet's meta.mat needs them: an
// array of structures with numbers and texts.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>

#include <dtrain/base/error.hpp>

#include "codec/bytes.hpp"
#include "photographs.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kHeader = 128;
constexpr std::uint32_t kMatrix = 14, kCompressed = 15;
constexpr std::uint8_t kStructure = 2;
constexpr int kLongestName = 257, kMostSynsets = 1 << 20;
constexpr std::size_t kShortestName = 2;  // a letter and its end
enum Storage : std::uint32_t {
  i8 = 1,
  u8 = 2,
  i16 = 3,
  u16 = 4,
  i32 = 5,
  u32 = 6,
  f32 = 7,
  f64 = 9,
  utf8 = 16,
  utf16 = 17
};

[[noreturn]] void fail(const std::string& name, std::string_view why) {
  throw DataError(fmt::format("{}: MAT-file: {}", name, why), "take the development kit of 2012 as it was published");
}

struct Element {
  std::uint32_t type = 0;
  ByteView data;
};

// Elements one after another.
class Elements {
 public:
  Elements(const std::string& name, ByteView bytes) : name_(name), bytes_(bytes) {}
  bool empty() const { return bytes_.size() < 8; }

  Element next() {
    if (empty()) fail(name_, "ends early");
    Element element;
    const auto first = load<std::uint32_t>(bytes_, 0);
    if (first >> 16 != 0) {  // a small one: its size in the upper half, its data instead of a size
      const std::size_t size = first >> 16;
      if (size > 4) fail(name_, "a damaged element");
      element = {first & 0xffff, bytes_.subspan(4, size)};
      bytes_ = bytes_.subspan(8);
      return element;
    }
    const std::uint64_t size = load<std::uint32_t>(bytes_, 4),
                        padded = first == kCompressed ? size : (size + 7) / 8 * 8;
    if (size > bytes_.size() - 8) fail(name_, "an element is longer than the file");
    element = {first, bytes_.subspan(8, size)};
    bytes_ = bytes_.subspan(std::min<std::uint64_t>(8 + padded, bytes_.size()));
    return element;
  }
  ByteView next(std::uint32_t type) {
    const Element element = next();
    if (element.type != type) fail(name_, fmt::format("an element of type {} where {} belongs", element.type, type));
    return element.data;
  }

 private:
  const std::string& name_;
  ByteView bytes_;
};

// A matrix behind its flags, dimensions and name.
struct Matrix {
  std::uint8_t kind = 0;
  std::uint64_t count = 1;
  Elements content;
};

Matrix open_matrix(const std::string& name, ByteView bytes) {
  Elements elements(name, bytes);
  const ByteView flags = elements.next(u32);
  const ByteView sides = elements.next(i32);
  elements.next(i8);  // its name
  Matrix matrix{flags.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(flags[0]), 1, elements};
  for (std::size_t i = 0; i + 4 <= sides.size(); i += 4) {
    const auto side = static_cast<std::uint64_t>(load<std::uint32_t>(sides, i));
    matrix.count = std::min<std::uint64_t>(matrix.count * side, 1u << 20);
  }
  return matrix;
}

// The first number, or the number of a letter.
std::optional<double> number_in(const Element& element) {
  const ByteView data = element.data;
  const auto as = [&]<typename T>(T) -> std::optional<double> {
    return data.size() < sizeof(T) ? std::nullopt : std::optional(static_cast<double>(load<T>(data, 0)));
  };
  switch (element.type) {
    case i8:
      return as(std::int8_t{});
    case u8:
      return as(std::uint8_t{});
    case i16:
      return as(std::int16_t{});
    case u16:
      return as(std::uint16_t{});
    case i32:
      return as(std::int32_t{});
    case u32:
      return as(std::uint32_t{});
    case f32:
      return as(float{});
    case f64:
      return as(double{});
    default:
      return std::nullopt;
  }
}

// A number that must be a count or an id; nothing where it is none, or no whole number below `end`.
std::optional<int> whole_number_in(const Element& element, int end) {
  const std::optional<double> number = number_in(element);
  if (!number || !(*number >= 0 && *number < end) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int>(*number);
}

std::string letters_in(const Element& element) {
  std::string text;
  const std::size_t step = element.type == u16 || element.type == utf16 ? 2 : 1;
  for (std::size_t i = 0; i < element.data.size(); i += step) text += static_cast<char>(element.data[i]);
  return text;
}

std::vector<std::string> field_names(const std::string& name, Elements& content) {
  const Element width = content.next();
  const ByteView names = content.next(i8);
  const auto length = static_cast<std::size_t>(whole_number_in(width, kLongestName).value_or(0));
  if (length < kShortestName) fail(name, "a damaged length of its fields' names");
  std::vector<std::string> fields;
  for (std::size_t at = 0; at + length <= names.size(); at += length) {
    const std::string_view text = text_of(names.subspan(at, length));
    fields.emplace_back(text.substr(0, text.find('\0')));
  }
  return fields;
}

std::map<int, std::string> synsets_in(const std::string& name, ByteView bytes) {
  Matrix synsets = open_matrix(name, bytes);
  if (synsets.kind != kStructure) fail(name, "its first value is no array of structures");
  const std::vector<std::string> fields = field_names(name, synsets.content);
  std::map<int, std::string> found;
  for (std::uint64_t i = 0; i < synsets.count; ++i) {
    int id = 0;
    std::string synset;
    for (const std::string& field : fields) {
      const ByteView value = synsets.content.next(kMatrix);
      if (field != "ILSVRC2012_ID" && field != "WNID") continue;
      const Element content = open_matrix(name, value).content.next();
      if (field == "WNID") synset = letters_in(content);
      if (field == "ILSVRC2012_ID") id = whole_number_in(content, kMostSynsets).value_or(0);
    }
    found[id] = synset;
  }
  return found;
}

}  // namespace

std::map<int, std::string> read_synsets(const SourceBytes& meta) {
  const std::string& name = meta.name;
  const bool little = meta.bytes.size() > kHeader && text_of(meta.bytes.subspan(126, 2)) == "IM";
  if (!little) fail(name, "not of level 5, little-endian");
  Elements elements(name, meta.bytes.subspan(kHeader));
  const Element first = elements.next();
  if (first.type == kMatrix) return synsets_in(name, first.data);
  if (first.type != kCompressed) fail(name, "begins with something unknown");
  const SourceBytes plain = gunzip({name, first.data, meta.owner});
  return synsets_in(name, Elements(name, plain.bytes).next(kMatrix));
}

}  // namespace dtrain::data
