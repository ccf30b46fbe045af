#include <fmt/format.h>

#include <atomic>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http.hpp>

#include "parallel.hpp"
#include "part_file.hpp"
#include "store_state.hpp"

namespace dtrain::net {

void ObjectStore::download(const std::string& url, const Path& to,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  State& state = *state_;
  const ObjectState pinned = state.look(url);
  PartFile file(to, url, pinned, state.limits.part_size);
  std::atomic<std::uint64_t> done = pinned.size;
  for (const std::size_t number : file.missing()) done -= file.size_of(number);
  for_each_piece(file.missing().size(), static_cast<std::size_t>(state.limits.connections),
                 [&](std::size_t piece, const Came& came) {
                   const std::size_t number = file.missing()[piece];
                   state.read_range(url, pinned, {file.begin_of(number), file.size_of(number)},
                                    [&](std::uint64_t begin, ByteView bytes) {
                                      file.write(file.begin_of(number) + begin, bytes);
                                      came(bytes.size());
                                      done += bytes.size();
                                      if (progress) progress(done, pinned.size);
                                    });
                   file.has_come(number);
                 });
  if (compare(url, pinned, file.content().bytes()) == ContentMatch::differs) {
    file.drop();
    throw DataError(
        fmt::format("{}: what came has another checksum than the object, {}", shown_url(url), pinned.checksum),
        "run the same command again; should it stay so, the object is damaged");
  }
  file.complete();
}

}  // namespace dtrain::net
