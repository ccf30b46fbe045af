#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {
namespace {

constexpr std::size_t kSampledRecords = 32;
constexpr std::size_t kSampledBytes = 4096;  // of each of them

// Ends of the records by their places in the file, which the index may list in another order.
std::vector<std::uint64_t> sorted_ends(const RecordFile& file) {
  std::vector<std::uint64_t> ends;
  ends.reserve(file.size() + 1);
  for (std::size_t i = 0; i < file.size(); ++i) ends.push_back(file.offset(i));
  ends.push_back(file.bytes());
  std::ranges::sort(ends);
  return ends;
}

bool lies_in_order(const RecordFile& file) {
  for (std::size_t i = 1; i < file.size(); ++i) {
    if (file.offset(i) <= file.offset(i - 1)) return false;
  }
  return true;
}

// Adds the sizes of the first `count` records. A record counts up to the next one in its file, so that the index alone
// gives the sizes; of a hundred million in their usual order no list is made.
void add_sizes(const RecordFile& file, std::size_t count, Sha256& hash) {
  constexpr std::size_t kBlock = 1024;
  const bool in_order = lies_in_order(file);
  const std::vector<std::uint64_t> ends = in_order ? std::vector<std::uint64_t>() : sorted_ends(file);
  const auto end_of = [&](std::size_t i) {
    if (!in_order) return *std::ranges::upper_bound(ends, file.offset(i));
    return i + 1 < file.size() ? file.offset(i + 1) : file.bytes();
  };
  std::uint64_t sizes[kBlock];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = std::min(kBlock, count - first);
    for (std::size_t k = 0; k < block; ++k) sizes[k] = end_of(first + k) - file.offset(first + k);
    hash.update(std::as_bytes(std::span(sizes, block)));
  }
}

std::string hash_of_sizes(const RecordSet& set, std::size_t count) {
  Sha256 hash;
  for (const RecordFile& file : set.files()) {
    const std::size_t taken = std::min(count, file.size());
    add_sizes(file, taken, hash);
    count -= taken;
  }
  return hash.hex();
}

// A server would have to be asked for each of them.
std::string hash_of_contents(const RecordSet& set, std::size_t count) {
  if (set.is_remote()) return {};
  const std::size_t sampled = std::min(count, kSampledRecords);
  Sha256 hash;
  Record record;
  for (std::size_t i = 0; i < sampled; ++i) {
    try {
      set.read(i * count / sampled, record);
    } catch (const DataError&) {
      return {};  // a loader reports it in its turn
    }
    hash.update(std::as_bytes(std::span(record.labels)));
    hash.update(record.payload.first(std::min(record.payload.size(), kSampledBytes)));
  }
  return hash.hex();
}

}  // namespace

RecordOrder order_of_records(const RecordSet& set, std::size_t count) {
  const std::size_t taken = std::min(count, set.size());
  return {.sizes = hash_of_sizes(set, taken), .contents = hash_of_contents(set, taken)};
}

}  // namespace dtrain::data
