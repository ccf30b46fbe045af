#include "remote_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::data {
namespace {

// Small enough that the first batch of a shuffled epoch comes soon, large enough that requests do not cost more than
// bytes.
constexpr std::uint64_t kBlock = 1u << 20;

Path cache_folder(const RemoteOptions& options) {
  return options.cache_dir.empty() ? user_cache_folder() : options.cache_dir;
}

}  // namespace

bool is_remote(const Path& path) { return net::is_object_url(path.string()); }

Path shown_path(const Path& path) { return net::shown_url(path.string()); }

std::string shown_files(const Path& files) {
  std::vector<std::string> shown = split(files.string(), ',');
  for (std::string& file : shown) file = net::shown_url(file);
  return join(shown, ",");
}

bool is_too_much_to_cache(const RemoteOptions& options, const std::string& name, std::uint64_t bytes) {
  if (bytes <= options.cache_size / 2 || options.in_runs) return false;
  if (options.tell) {
    options.tell(
        fmt::format("{}: {} are too much for a cache of {}: each record is fetched alone, every time; "
                    "setting 'shuffle-block' 1024, or a larger setting 'cache-size', is faster",
                    name, format_bytes(bytes), format_bytes(options.cache_size)));
  }
  return true;
}

RemoteFile::RemoteFile(std::string url, const RemoteOptions& options)
    : url_(std::move(url)),
      store_(options.store ? options.store : std::make_shared<net::ObjectStore>()),
      state_(options.state ? *options.state : store_->state(url_)),
      tell_(options.tell) {
  // Without an ETag, versions of the object cannot be distinguished.
  if (state_.etag.empty() || options.without_cache || is_too_much_to_cache(options, net::shown_url(url_), state_.size))
    return;
  object_ = sha256_hex(bytes_of(fmt::format("{}\n{}\n{}\n{}", url_, state_.etag, state_.size, kBlock))).substr(0, 32);
  cache_ = BlockCache::of_folder(cache_folder(options), options.cache_size);
  const std::uint64_t blocks = state_.size / kBlock + (state_.size % kBlock != 0);
  checked_ = std::vector<std::atomic<bool>>(blocks);
  asked_ = std::vector<std::atomic<std::uint32_t>>(blocks);
}

void RemoteFile::read(std::uint64_t offset, std::span<std::byte> into) {
  if (offset > state_.size || into.size() > state_.size - offset) {
    throw DataError(fmt::format("{}: has {} bytes, so none from {} to {}", net::shown_url(url_), state_.size, offset,
                                offset + into.size()),
                    "its .idx belongs to another file");
  }
  if (!cache_) return store_->read(url_, state_, offset, into);
  while (!into.empty()) {
    const std::uint64_t block = offset / kBlock, begin = offset % kBlock;
    const std::uint64_t count = std::min<std::uint64_t>(into.size(), kBlock - begin);
    read_block(block, begin, into.first(count));
    into = into.subspan(count);
    offset += count;
  }
}

void RemoteFile::read_block(std::uint64_t block, std::uint64_t begin, std::span<std::byte> into) {
  if (cache_->read(name_of(block), begin, into, !checked_[block])) {
    checked_[block] = true;
    return;
  }
  const BlockCache::Claim claim = cache_->claim(name_of(block));
  if (cache_->read(name_of(block), begin, into, true)) return;
  const std::string content = fetch(block);
  std::memcpy(into.data(), content.data() + begin, into.size());
}

std::string RemoteFile::fetch(std::uint64_t block) {
  std::string content(std::min(kBlock, state_.size - block * kBlock), '\0');
  store_->read(url_, state_, block * kBlock, std::as_writable_bytes(std::span(content)));
  cache_->put(name_of(block), bytes_of(content), tell_);
  checked_[block] = true;
  return content;
}

void RemoteFile::fetch_ahead(std::uint64_t offset, std::uint64_t size, std::uint32_t round) {
  if (!cache_ || size == 0) return;
  for (std::uint64_t block = offset / kBlock; block <= (offset + size - 1) / kBlock; ++block) {
    std::byte first{};
    if (block >= asked_.size() || asked_[block].exchange(round) == round) continue;
    try {
      read_block(block, 0, {&first, 1});
    } catch (const Error&) {
      std::uint32_t mine = round;
      asked_[block].compare_exchange_strong(mine, 0);
      throw;
    }
  }
}

}  // namespace dtrain::data
