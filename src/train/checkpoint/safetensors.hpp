// The safetensors format (github.com/huggingface/safetensors): 8 bytes little-endian length of a JSON header, the
// header padded with spaces to a multiple of 8, then the tensors' bytes one after the other without gaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::train {

// In the metadata of an exported .safetensors file: the name of its network, what a checkpoint says about pixels and
// classes as JSON, and nn::anchor_size() of its network, which no tensor shows.
inline constexpr const char* kExportedNetwork = "network";
inline constexpr const char* kExportedPreprocessing = "preprocessing";
inline constexpr const char* kAnchorSize = "anchor_size";

// float32 values under a name; borrowed.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

// All bytes before the tensors. `metadata`: an object of strings, or null for none.
std::string safetensors_header(std::span<const NamedTensor> tensors, const Json& metadata);
// Header and tensors, in their order. The caller commits.
void write_safetensors(AtomicFile& file, std::string_view header, std::span<const NamedTensor> tensors);

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", ...
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes of the file, absolute
};

// Size of an element in bytes; 0 for a name that safetensors does not have, or has for less than a byte.
std::uint64_t dtype_bytes(std::string_view dtype);

// The table of a whole file, in the order of the bytes. Everything is checked: the header's length and keys, each shape
// against its bytes, and that tensors follow each other without gap or overlap up to the end of the file.
// Throws DataError naming `source` and the tensor.
std::vector<SafetensorsEntry> parse_safetensors(ByteView file, std::string_view source);

// The object of strings that stands beside the table of an export of dtrain; null for a file of another program, whose
// words may mean something else.
Json export_metadata(ByteView file, std::string_view source);

// A file mapped and checked as parse_safetensors does; tensors stay in the page cache until they are copied.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Path& path);
  SafetensorsFile(std::vector<std::byte> content, const Path& name);  // of a file that was read
  std::uint64_t size() const { return whole_.size(); }
  ByteView header() const;  // what safetensors_header made
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  ByteView data() const;  // all tensors
  ByteView bytes(const SafetensorsEntry& entry) const;

 private:
  MappedFile file_;
  std::vector<std::byte> content_;
  ByteView whole_;  // of one of the two
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace dtrain::train
