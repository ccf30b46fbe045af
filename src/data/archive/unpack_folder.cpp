#include "unpack_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/net/http.hpp>

#include "safe_names.hpp"

namespace dtrain::data {
namespace {

constexpr auto kNoteEvery = std::chrono::seconds(1);
// Files of the folder that begin so are its own: no archive may hold such names.
constexpr const char* kOwnFiles = ".dtrain-unpack";
constexpr const char* kNoteEnding = ".json";

[[noreturn]] void cannot(std::string_view action, const Path& path) {
  const int error = errno;
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
              error == ENOSPC ? "free some space there; the same command goes on" : "");
}

// Grows as PART and becomes PATH when it is whole. Unlike AtomicFile it is not brought to disk alone: small files would
// take so long.
class ArrivingFile {
 public:
  ArrivingFile(Path part, Path path) : part_(std::move(part)), path_(std::move(path)) {
    fd_ = FileDescriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd_) cannot("create", part_);
  }
  ArrivingFile(const ArrivingFile&) = delete;
  ~ArrivingFile() {
    if (!arrived_) ::unlink(part_.c_str());
  }
  void write(ByteView bytes) {
    if (write_all(fd_, bytes) != bytes.size()) cannot("write", part_);
  }
  void arrive() {
    if (::rename(part_.c_str(), path_.c_str()) != 0) cannot("rename", part_);
    arrived_ = true;
  }

 private:
  Path part_, path_;
  FileDescriptor fd_;
  bool arrived_ = false;
};

void bring_to_disk(const Path& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) cannot("write to disk", folder);
}

bool is_own_file(const std::string& name) {
  return Path(name).lexically_normal().begin()->string().starts_with(fmt::format("{}.", kOwnFiles));
}

}  // namespace

UnpackFolder::UnpackFolder(Path out, const std::string& archive, std::string version)
    : out_(std::move(out)),
      note_(out_ / fmt::format("{}{}", kOwnFiles, kNoteEnding)),
      part_(temporary_for(out_ / kOwnFiles)),
      shown_(net::shown_url(archive)),
      noted_as_(net::stored_url(archive)),
      version_(std::move(version)) {
  dtrain::make_folder(out_);
  remove_abandoned_temporaries(out_, kOwnFiles);
}

std::uint64_t UnpackFolder::where_it_ended() const {
  if (!std::filesystem::exists(note_)) return 0;
  const Json note = Json::parse(read_file(note_), note_.string());
  const bool same = note.at("from").as_string() == noted_as_ && note.at("version").as_string() == version_;
  return same ? static_cast<std::uint64_t>(note.at("offset").as_integer()) : 0;
}

// A link inside the folder would lead the files of the archive elsewhere.
void UnpackFolder::check(const std::string& name) const {
  check_stays_inside(name, shown_);
  if (is_own_file(name)) {
    throw DataError(fmt::format("{}: holds {}, a name that dtrain gives to files of its own there", shown_, name),
                    "make the archive again without this file: it belongs to an unpacking that was not finished");
  }
  Path below = out_;
  for (const Path& part : Path(name)) {
    below /= part;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(below))) continue;
    throw DataError(fmt::format("{}: is a link, and {} would be written where it leads", below.string(), name),
                    "remove the link, or choose another folder");
  }
}

void UnpackFolder::make_folder(const std::string& name) {
  check(name);
  dtrain::make_folder(out_ / name);
}

void UnpackFolder::write(const std::string& name, const std::function<ByteView()>& read) {
  check(name);
  const Path path = out_ / name;
  dtrain::make_folder(path.parent_path());
  ArrivingFile file(part_, path);
  for (ByteView piece = read(); !piece.empty(); piece = read()) file.write(piece);
  file.arrive();
}

void UnpackFolder::reached(std::uint64_t offset) {
  const auto now = std::chrono::steady_clock::now();
  if (now - noted_ < kNoteEvery) return;
  bring_to_disk(out_);
  noted_ = std::chrono::steady_clock::now();
  write_file_atomic(note_, Json::object({{"from", noted_as_}, {"version", version_}, {"offset", offset}}).dump());
}

void UnpackFolder::finish() {
  bring_to_disk(out_);
  std::filesystem::remove(note_);
}

}  // namespace dtrain::data
