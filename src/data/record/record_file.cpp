#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "record_format.hpp"
#include "record_index.hpp"
#include "remote/remote_file.hpp"

namespace dtrain::data {

// Nothing changes after the constructor: the offsets and the mapping of a local file are only read, so that any number
// of threads may read records without a lock. A remote file's reads go through RemoteFile, whose block cache does its
// own locking. The payload of a local record points into the mapping and ends with the RecordFile; the payload of a
// remote one is kept alive by Record::owner. A missing or wrong index fails in the constructor. A damaged record or a
// server that fails is the error of that one read(): other threads and later reads are not affected.
struct RecordFile::State {
  Path path;
  std::vector<std::uint64_t> offsets;
  MappedFile file;                     // of a local file
  std::unique_ptr<RemoteFile> remote;  // of a remote one
  std::vector<std::uint64_t> starts;   // of a remote one: the offsets, sorted

  RecordBytes bytes() const { return {file.bytes(), path}; }
  void open_local();
  void open_remote(const RemoteOptions& options);
  std::uint64_t walk_to_end(std::uint64_t offset) const;
  std::uint64_t next_start(std::uint64_t offset) const;
  std::uint64_t end_of(std::uint64_t offset) const;
};

namespace {

// The lines of more than 100 million records.
constexpr std::uint64_t kLargestIndex = std::uint64_t{4} << 30;

// Up to the next listed record so much is fetched in one go: more than photographs have.
constexpr std::uint64_t kUsualRecord = 16u << 20;

std::shared_ptr<std::string> bytes_between(RemoteFile& file, std::uint64_t first, std::uint64_t end) {
  const auto bytes = std::make_shared<std::string>(end - first, '\0');
  file.read(first, std::as_writable_bytes(std::span(*bytes)));
  return bytes;
}

}  // namespace

// What stands behind the file's name in a web address may be what gives access to a whole folder.
Path index_path(const Path& rec) {
  const std::string text = rec.string();
  const bool is_web = net::is_object_url(text) && !net::is_s3_url(text);
  const std::size_t end = is_web ? std::min(text.find_first_of("?#"), text.size()) : text.size();
  return Path(text.substr(0, end)).replace_extension(".idx").string() + text.substr(end);
}

void RecordFile::State::open_local() {
  file = MappedFile(path);
  if (file.bytes().empty()) {
    throw DataError(fmt::format("{}: is empty", path.string()),
                    "make it again with `dtrain data prepare` or `dtrain data pack`");
  }
  const Path idx = index_path(path);
  if (!std::filesystem::exists(idx)) {
    offsets = scan_records(bytes());
    return;
  }
  const MappedFile index(idx);
  offsets = parse_index(text_of(index.bytes()), idx);
  check_index_fits(offsets, idx, path, file.bytes().size(),
                   [&](std::uint64_t offset) { return record_end(bytes(), offset); });
}

void RecordFile::State::open_remote(const RemoteOptions& options) {
  RemoteOptions shared = options;
  if (!shared.store) shared.store = std::make_shared<net::ObjectStore>();
  remote = std::make_unique<RemoteFile>(path.string(), shared);
  const Path idx = index_path(path);
  try {
    offsets = parse_index(shared.store->content(idx.string(), shared.store->state(idx.string()), kLargestIndex), idx);
  } catch (const net::AwsError& error) {
    if (error.facts().problem != net::AwsProblem::not_found) throw;
    throw DataError(
        fmt::format("{}: has no {} beside it", shown_path(path).string(), shown_path(idx).filename().string()),
        "copy the .idx there too: a file so far away is not scanned");
  }
  starts = offsets;
  std::sort(starts.begin(), starts.end());
  check_index_fits(offsets, idx, path, remote->size(), [&](std::uint64_t offset) { return walk_to_end(offset); });
}

// By the heads of the record's parts.
std::uint64_t RecordFile::State::walk_to_end(std::uint64_t offset) const {
  return record_end(path, remote->size(), offset,
                    [&](std::uint64_t at, std::span<std::byte> into) { remote->read(at, into); });
}

std::uint64_t RecordFile::State::next_start(std::uint64_t offset) const {
  const auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  return next == starts.end() ? remote->size() : *next;
}

// The next record that is listed begins where this one ends, unless the index leaves records out. What lies between may
// be as large as the file, by what the server states, and is to be allocated.
std::uint64_t RecordFile::State::end_of(std::uint64_t offset) const {
  const std::uint64_t next = next_start(offset);
  return next - offset <= kUsualRecord ? next : std::min(next, walk_to_end(offset));
}

RecordFile::RecordFile(const Path& rec, const RemoteOptions& options) : state_(std::make_unique<State>()) {
  state_->path = rec;
  if (data::is_remote(rec)) {
    state_->open_remote(options);
  } else {
    state_->open_local();
  }
}

RecordFile::RecordFile(RecordFile&&) noexcept = default;

RecordFile::~RecordFile() = default;

std::size_t RecordFile::size() const { return state_->offsets.size(); }

std::uint64_t RecordFile::offset(std::size_t position) const {
  DTRAIN_CHECK(position < size(), "there is no record at this position");
  return state_->offsets[position];
}

Record RecordFile::read(std::size_t position) const {
  Record record;
  read(position, record);
  return record;
}

void RecordFile::read(std::size_t position, Record& into) const {
  const std::uint64_t first = offset(position);
  if (!state_->remote) return record_at(state_->bytes(), first, into);
  const auto bytes = bytes_between(*state_->remote, first, state_->end_of(first));
  record_at({bytes_of(*bytes), state_->path, first}, first, into);
  if (!into.owner) into.owner = bytes;
}

const Path& RecordFile::path() const { return state_->path; }

bool RecordFile::is_remote() const { return state_->remote != nullptr; }

std::uint64_t RecordFile::bytes() const {
  return state_->remote ? state_->remote->size() : state_->file.bytes().size();
}

void RecordFile::fetch_ahead(std::size_t position, std::uint32_t round) const {
  if (!state_->remote) return;
  const std::uint64_t first = offset(position);
  state_->remote->fetch_ahead(first, std::min(state_->next_start(first) - first, kUsualRecord), round);
}

}  // namespace dtrain::data
