#include "torch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/data/zip.hpp>

#include "checkpoint/safetensors.hpp"
#include "pickle.hpp"

namespace dtrain::train {
namespace {

constexpr const char* kHint =
    "save the tensors alone, with torch.save(model.state_dict(), FILE) or safetensors.torch.save_file";
// A pickle of the number 0x1950a86a20f9469cfc6c, with protocol 2.
constexpr std::string_view kOldStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr std::size_t kDeepest = 16, kMostVisits = 4'000'000, kLongestName = 1024;
constexpr std::size_t kMostOfNames = 64 << 20;  // bytes of all names together

using Storages = std::unordered_map<std::string, ByteView>;

// Names the tensors in dictionaries by their keys. A pickle can share dictionaries, so that there are more paths than
// bytes: they are counted.
class Collector {
 public:
  Collector(const Storages& storages, const std::string& source) : storages_(storages), source_(source) {}

  void visit(const PickleValue& value, const std::string& name, std::size_t depth) {
    if (depth > kDeepest || ++visits_ > kMostVisits) fail("more dictionaries inside each other than weights have");
    if (name.size() > kLongestName) fail(fmt::format("a name of {} characters", name.size()));
    if (const auto* tensor = std::get_if<PickleTensor>(&value.value)) add(*tensor, name);
    const auto* dictionary = std::get_if<PickleDictionary>(&value.value);
    if (!dictionary) return;
    for (const auto& [key, item] : dictionary->items) {
      const auto* word = std::get_if<std::string>(&key->value);
      if (word) visit(*item, name.empty() ? *word : name + "." + *word, depth + 1);
    }
  }

  std::vector<ForeignTensor> take() { return std::move(tensors_); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", source_, what), kHint);
  }

  void add(const PickleTensor& tensor, const std::string& name) {
    names_size_ += name.size();
    if (tensors_.size() >= kMostTensors || names_size_ > kMostOfNames) fail("more names of tensors than weights have");
    const auto found = storages_.find(std::string(tensor.storage->key));
    if (found == storages_.end()) fail(fmt::format("the data of tensor '{}' are missing", name));
    ForeignTensor foreign{name, tensor.shape, tensor.strides, std::string(tensor.storage->dtype), found->second};
    const std::uint64_t skipped = offset_bytes(tensor);
    if (skipped > foreign.bytes.size()) fail(fmt::format("tensor '{}' begins behind its data", name));
    foreign.bytes = foreign.bytes.subspan(skipped);
    try {
      check_tensor_bytes(foreign);
    } catch (const DataError& error) {
      fail(fmt::format("tensor '{}': {}", name, error.what()));
    }
    tensors_.push_back(std::move(foreign));
  }

  // Where that is no number of bytes, the largest.
  static std::uint64_t offset_bytes(const PickleTensor& tensor) {
    std::uint64_t bytes = 0;
    const bool too_large = tensor.offset < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(tensor.offset),
                                                                       dtype_bytes(tensor.storage->dtype), &bytes);
    return too_large ? ~std::uint64_t{0} : bytes;
  }

  const Storages& storages_;
  const std::string& source_;
  std::vector<ForeignTensor> tensors_;
  std::size_t visits_ = 0, names_size_ = 0;
};

std::vector<ForeignTensor> collect(const PickleValue& root, const Storages& storages, const std::string& source) {
  Collector collector(storages, source);
  collector.visit(root, "", 0);
  return collector.take();
}

std::vector<ForeignTensor> parse_zip(ByteView file, const std::string& source) {
  const std::vector<data::StoredFile> members = data::stored_files(file, source);
  const auto ends_in = [](std::string_view end) {
    return [end](const data::StoredFile& member) { return member.name.ends_with(end); };
  };
  const auto pickle_file = std::ranges::find_if(members, ends_in("data.pkl"));
  if (pickle_file == members.end()) {
    throw DataError(source + ": a zip archive without the data.pkl of PyTorch", kHint);
  }
  const std::string folder =
      pickle_file->name.substr(0, pickle_file->name.size() - std::string_view("data.pkl").size());
  Storages storages;
  for (const data::StoredFile& member : members) {
    if (member.name == folder + "byteorder" && text_of(member.bytes) != "little") {
      throw DataError(source + ": numbers of another byte order", kHint);
    }
    if (member.name.starts_with(folder + "data/")) storages[member.name.substr(folder.size() + 5)] = member.bytes;
  }
  Pickle pickle;
  ByteReader reader(pickle_file->bytes, source, kHint);
  return collect(pickle.read(reader), storages, source);
}

// Magic number, protocol, facts about the machine, the object, the storages' keys; then the storages in this order,
// each with its number of elements in front.
std::vector<ForeignTensor> parse_old(ByteView file, const std::string& source) {
  Pickle pickle;
  ByteReader reader(file, source, kHint);
  for (int i = 0; i < 3; ++i) pickle.read(reader);
  const PickleValue& root = pickle.read(reader);
  std::unordered_map<std::string, std::uint64_t> sizes;  // of an element
  for (const PickleStorage* storage : pickle.storages()) sizes[std::string(storage->key)] = dtype_bytes(storage->dtype);
  const auto* keys = std::get_if<PickleList>(&pickle.read(reader).value);
  if (!keys) reader.fail("the list of storages is missing");
  Storages storages;
  for (const PickleValue* value : keys->items) {
    const auto* key = std::get_if<std::string>(&value->value);
    const auto size = key ? sizes.find(*key) : sizes.end();
    if (size == sizes.end() || size->second == 0) reader.fail("a storage that no tensor uses");
    const std::uint64_t elements = reader.count(size->second);
    storages[*key] = reader.take(elements * size->second);
  }
  return collect(root, storages, source);
}

}  // namespace

bool is_torch_file(ByteView file) {
  return text_of(file).starts_with(data::kZipStart) || text_of(file).starts_with(kOldStart.front());
}

std::vector<ForeignTensor> parse_torch_file(ByteView file, const std::string& source) {
  if (text_of(file).starts_with(data::kZipStart)) return parse_zip(file, source);
  if (text_of(file).starts_with(kOldStart)) return parse_old(file, source);
  Pickle pickle;  // its first refused name is the better message
  ByteReader reader(file, source, kHint);
  pickle.read(reader);
  throw DataError(source + ": a pickle that torch.save did not write", kHint);
}

}  // namespace dtrain::train
