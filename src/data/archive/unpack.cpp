#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/data/remote.hpp>

#include "safe_names.hpp"
#include "tar_stream.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kWindow = 32u << 20;
constexpr auto kNoteEvery = std::chrono::seconds(1);
constexpr const char* kNote = ".dtrain-unpack.json";

// An archive, local or remote, read in windows: while one is used the next one comes.
class Archive {
 public:
  Archive(net::ObjectStore& store, const std::string& from) : store_(store), url_(from) {
    if (is_remote(from)) {
      state_ = store.state(from);
    } else {
      local_ = MappedFile(from);
      state_.size = local_.bytes().size();
    }
  }
  std::uint64_t size() const { return state_.size; }
  // Distinguishes this archive from another of the same name.
  std::string version() const { return fmt::format("{} {}", state_.size, state_.etag); }

  void read(std::uint64_t offset, std::span<std::byte> into) {
    if (!is_remote(url_)) {
      std::memcpy(into.data(), local_.bytes().data() + offset, into.size());
      return;
    }
    while (!into.empty()) {
      if (offset < begin_ || offset >= begin_ + window_.size()) turn_to(offset);
      const std::uint64_t count = std::min<std::uint64_t>(into.size(), begin_ + window_.size() - offset);
      std::memcpy(into.data(), window_.data() + (offset - begin_), count);
      into = into.subspan(count);
      offset += count;
    }
  }

 private:
  std::string fetch(std::uint64_t offset) {
    std::string window(std::min(kWindow, state_.size - offset), '\0');
    store_.read(url_, state_, offset, std::as_writable_bytes(std::span(window)));
    return window;
  }

  void turn_to(std::uint64_t offset) {
    const std::uint64_t next = begin_ + window_.size();
    const bool is_next = coming_.valid() && offset == next;
    std::string window = is_next ? coming_.get() : fetch(offset);
    begin_ = offset;
    window_ = std::move(window);
    const std::uint64_t after = begin_ + window_.size();
    if (after < state_.size) coming_ = std::async(std::launch::async, [this, after] { return fetch(after); });
  }

  net::ObjectStore& store_;
  std::string url_;
  net::ObjectState state_;
  MappedFile local_;
  std::uint64_t begin_ = 0;
  std::string window_;
  std::future<std::string> coming_;
};

[[noreturn]] void fail(std::string_view action, const Path& path) {
  const int error = errno;
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == ENOSPC ? "free some space there; the same command goes on" : "");
}

// Becomes PATH when it is whole. Unlike AtomicFile it is not brought to disk alone: small files would take so long.
class ArrivingFile {
 public:
  explicit ArrivingFile(Path path) : path_(std::move(path)), part_(path_) {
    part_ += ".part";
    fd_ = FileDescriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd_) fail("create", part_);
  }
  void write(ByteView bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) fail("write", part_);
      if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void arrive() {
    if (::rename(part_.c_str(), path_.c_str()) != 0) fail("rename", part_);
  }

 private:
  Path path_, part_;
  FileDescriptor fd_;
};

// A link inside the target folder would lead the files of the archive elsewhere.
void refuse_links(const Path& folder, const Path& name) {
  Path below = folder;
  for (const Path& part : name) {
    below /= part;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(below))) continue;
    throw DataError(fmt::format("{}: is a link, and {} would be written where it leads", below.string(), name.string()),
                    "remove the link, or choose another folder");
  }
}

void bring_to_disk(const Path& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) fail("write to disk", folder);
}

class Unpacker {
 public:
  Unpacker(net::ObjectStore& store, const UnpackOptions& options)
      : options_(options), archive_(store, options.from), note_(options.out / kNote) {}

  UnpackResult run() {
    if (archive_.size() == 0) throw DataError(options_.from + ": is empty, no tar archive", "copy it again");
    make_folder(options_.out);
    std::uint64_t offset = result_.resumed_at = where_it_ended();
    const auto read = [&](std::uint64_t at, std::span<std::byte> into) { archive_.read(at, into); };
    while (const auto entry = next_tar_entry(options_.from, archive_.size(), offset, read)) {
      check_stays_inside(entry->name, options_.from);
      refuse_links(options_.out, entry->name);
      write(*entry);
      offset = entry->end;
      note(offset);
      if (options_.progress) options_.progress(offset, archive_.size());
    }
    bring_to_disk(options_.out);
    std::filesystem::remove(note_);
    return result_;
  }

 private:
  std::uint64_t where_it_ended() const {
    if (!std::filesystem::exists(note_)) return 0;
    const Json note = Json::parse(read_file(note_), note_.string());
    const bool same =
        note.at("from").as_string() == options_.from && note.at("version").as_string() == archive_.version();
    return same ? static_cast<std::uint64_t>(note.at("offset").as_integer()) : 0;
  }

  void note(std::uint64_t offset) {
    const auto now = std::chrono::steady_clock::now();
    if (now - noted_ < kNoteEvery) return;
    bring_to_disk(options_.out);
    noted_ = std::chrono::steady_clock::now();
    write_file_atomic(
        note_, Json::object({{"from", options_.from}, {"version", archive_.version()}, {"offset", offset}}).dump());
  }

  void write(const TarEntry& entry) {
    const Path path = options_.out / entry.name;
    if (entry.folder) return make_folder(path);
    make_folder(path.parent_path());
    ArrivingFile file(path);
    std::string piece;
    for (std::uint64_t at = 0; at < entry.size; at += piece.size()) {
      piece.resize(std::min<std::uint64_t>(1u << 20, entry.size - at));
      archive_.read(entry.content + at, std::as_writable_bytes(std::span(piece)));
      file.write(bytes_of(piece));
    }
    file.arrive();
    ++result_.files;
    result_.bytes += entry.size;
  }

  const UnpackOptions& options_;
  Archive archive_;
  Path note_;
  UnpackResult result_;
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();
};

}  // namespace

UnpackResult unpack_tar(net::ObjectStore& store, const UnpackOptions& options) {
  return Unpacker(store, options).run();
}

}  // namespace dtrain::data
