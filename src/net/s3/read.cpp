#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http.hpp>

#include "parallel.hpp"
#include "store_state.hpp"

namespace dtrain::net {

void require_at_most(std::uint64_t limit, const std::string& url, const ObjectState& state) {
  if (state.size <= limit) return;
  throw DataError(fmt::format("{}: has {} bytes by what the server states, where {} are the most", shown_url(url),
                              state.size, limit),
                  "is it another file under this name? else the server is wrong");
}

void ObjectStore::read(const std::string& url, const ObjectState& pinned, std::uint64_t offset,
                       std::span<std::byte> into, const std::function<void(std::uint64_t)>& progress) {
  DTRAIN_CHECK(offset + into.size() <= pinned.size, "a read stays inside its object");
  State& state = *state_;
  const std::uint64_t part = state.limits.part_size;
  const std::size_t parts = (into.size() + part - 1) / part;
  for_each_piece(parts, static_cast<std::size_t>(state.limits.connections), [&](std::size_t piece, const Came& came) {
    const std::uint64_t first = piece * part;
    state.read_range(url, pinned, {offset + first, std::min(part, into.size() - first)},
                     [&](std::uint64_t begin, ByteView bytes) {
                       std::memcpy(into.data() + first + begin, bytes.data(), bytes.size());
                       came(bytes.size());
                       if (progress) progress(bytes.size());
                     });
  });
}

std::string ObjectStore::content(const std::string& url, const ObjectState& pinned, std::uint64_t limit) {
  require_at_most(limit, url, pinned);
  std::string content(pinned.size, '\0');
  read(url, pinned, 0, std::as_writable_bytes(std::span(content)));
  return content;
}

}  // namespace dtrain::net
