// Python's pickle format, protocols 2 to 5, as far as torch.save uses it for dictionaries of tensors. Nothing in a
// pickle runs: it is read into plain values, and one that names any function or class but those of tensors is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/byte_reader.hpp"

namespace dtrain::train {

// A few bytes of a pickle make a tensor, and a few more have it under many names.
inline constexpr std::size_t kMostTensors = 400'000;

struct PickleValue;

struct PickleList {
  std::vector<const PickleValue*> items;
};
struct PickleDictionary {
  std::vector<std::pair<const PickleValue*, const PickleValue*>> items;
};
// One of the few names that are known.
enum class PickleGlobal { ordered_dict, rebuild_tensor, rebuild_parameter, storage_type };
struct PickleName {
  PickleGlobal kind{};
  std::string_view dtype{};  // of a storage_type, by its name in safetensors; a constant
};
// The bytes that tensors lie in; they are elsewhere in the file, under the key. A program of four bytes makes one.
struct PickleStorage {
  std::string_view key{};  // borrowed from the Pickle
  std::string_view dtype{};
  std::int64_t elements = 0;
};
struct PickleTensor {
  const PickleStorage* storage = nullptr;  // of the same Pickle
  std::int64_t offset = 0;                 // elements
  std::vector<std::int64_t> shape, strides;
};

// monostate: None, or another value that has no meaning here.
struct PickleValue {
  std::variant<std::monostate, std::int64_t, std::string, PickleList, PickleDictionary, PickleName, PickleStorage,
               PickleTensor>
      value;
};

// Owns the values of one or several pickles, which may share and even contain each other.
class Pickle {
 public:
  // Reads one pickle, up to its end. Throws DataError that names the byte, and the function or class that was refused.
  const PickleValue& read(ByteReader& reader);
  // All that were read.
  std::vector<const PickleStorage*> storages() const;

 private:
  std::deque<PickleValue> values_;
};

}  // namespace dtrain::train
