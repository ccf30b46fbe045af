#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {
namespace {

std::string name_of_files(const std::vector<Path>& files) {
  const std::string first = shown_path(files.front()).string();
  return files.size() == 1 ? first : fmt::format("{} and {} more", first, files.size() - 1);
}

// Whether their blocks go into the cache is decided by their sizes together. nullopt: a local file.
std::vector<std::optional<net::ObjectState>> states_of(const std::vector<Path>& files, net::ObjectStore* store) {
  std::vector<std::optional<net::ObjectState>> states;
  for (const Path& file : files)
    states.push_back(is_remote(file) ? std::optional(store->state(file.string())) : std::nullopt);
  return states;
}

// Without an ETag a RemoteFile cannot distinguish versions, and caches nothing.
void tell_of_no_cache(const RemoteOptions& remote, const std::vector<std::optional<net::ObjectState>>& states,
                      const std::string& name) {
  const auto has_version = [](const auto& state) { return !state || !state->etag.empty(); };
  if (remote.without_cache || !remote.tell || std::ranges::all_of(states, has_version)) return;
  remote.tell(name + ": its server gives no ETag, so nothing of it is cached: each record is fetched every time");
}

}  // namespace

RecordSet::RecordSet(const std::vector<Path>& files, RemoteOptions remote) {
  DTRAIN_CHECK(!files.empty(), "a set has a file");
  files_.reserve(files.size());
  if (!remote.store && std::any_of(files.begin(), files.end(), data::is_remote)) {
    remote.store = std::make_shared<net::ObjectStore>();
  }
  const std::vector<std::optional<net::ObjectState>> states = states_of(files, remote.store.get());
  std::uint64_t far_bytes = 0;
  for (const auto& state : states) far_bytes += state ? state->size : 0;
  remote.without_cache = remote.without_cache || is_too_much_to_cache(remote, name_of_files(files), far_bytes);
  tell_of_no_cache(remote, states, name_of_files(files));
  for (std::size_t i = 0; i < files.size(); ++i) {
    remote.state = states[i];
    files_.emplace_back(files[i], remote);
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + files_.back().size());
  }
}

void RecordSet::read(std::size_t position, Record& into) const {
  const auto [file, inside] = locate(position);
  file->read(inside, into);
}

bool RecordSet::is_remote() const {
  return std::any_of(files_.begin(), files_.end(), [](const RecordFile& file) { return file.is_remote(); });
}

void RecordSet::fetch_ahead(std::size_t position, std::uint32_t round) const {
  const auto [file, inside] = locate(position);
  file->fetch_ahead(inside, round);
}

std::string RecordSet::place(std::size_t position) const {
  const auto [file, inside] = locate(position);
  return fmt::format("{}: record {} at byte {}", shown_path(file->path()).string(), inside, file->offset(inside));
}

std::string RecordSet::name() const {
  std::vector<Path> paths;
  for (const RecordFile& file : files_) paths.push_back(file.path());
  return name_of_files(paths);
}

RecordSet::Located RecordSet::locate(std::size_t position) const {
  DTRAIN_CHECK(position < size(), "there is no record at this position");
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), position);
  const auto number = static_cast<std::size_t>(end - ends_.begin());
  return {&files_[number], position - (number == 0 ? 0 : ends_[number - 1])};
}

}  // namespace dtrain::data
