#include "far_weights.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>

#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/train/weights.hpp>

#include "checkpoint/far_checkpoint.hpp"

namespace dtrain::train {
namespace {

struct HashedUrl {
  std::string url, sha256;
  std::string name() const {
    const std::string last = url.substr(url.rfind('/') + 1);
    return last.empty() || last == "." || last == ".." ? "weights" : last;
  }
};

HashedUrl parse(const std::string& text) {
  constexpr std::string_view kMark = "#sha256=";
  constexpr std::size_t kDigits = 64;
  const std::size_t at = text.rfind(kMark);
  HashedUrl hashed{text.substr(0, at), at == text.npos ? "" : text.substr(at + kMark.size())};
  std::ranges::transform(hashed.sha256, hashed.sha256.begin(), [](unsigned char c) { return std::tolower(c); });
  if (hashed.sha256.size() == kDigits && hashed.sha256.find_first_not_of("0123456789abcdef") == text.npos)
    return hashed;
  throw UsageError(fmt::format("{}: weights from a URL need their hash", text),
                   fmt::format("name them {}{}HEX with the 64 digits that `sha256sum` prints, or copy the file to this "
                               "machine",
                               hashed.url, kMark));
}

// Waits while another thread or process downloads into the folder. On a file system without locks, each goes on by
// itself.
FileDescriptor lock_beside(const Path& folder) {
  constexpr auto kLookEvery = std::chrono::milliseconds(100);
  FileDescriptor lock(::open((folder.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  while (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (!pause_unless_stopped(kLookEvery))
      throw Stopped(folder.string() + ": stopped while another process downloads weights there");
  }
  return lock;
}

// Leaves the checked content as `copy`, or nothing.
void download(const HashedUrl& wanted, const Path& copy, const SharedStore& store) {
  const Path fresh = copy.string() + ".download";
  const SharedStore used = store ? store : std::make_shared<net::ObjectStore>();
  used->download(wanted.url, fresh);
  const std::string found = sha256_hex(MappedFile(fresh).bytes());
  if (found != wanted.sha256) {
    std::filesystem::remove(fresh);
    throw DataError(fmt::format("{}: has the SHA-256 {}, not {}", net::shown_url(wanted.url), found, wanted.sha256),
                    "was it replaced since its hash was written down?");
  }
  std::filesystem::rename(fresh, copy);
}

}  // namespace

Path file_of_weights(const Path& place) {
  if (is_far(place) || std::filesystem::exists(place)) return place;
  const std::vector<CheckpointName> checkpoints = list_checkpoints(place);
  if (!checkpoints.empty()) return checkpoints.front().stem() + ".safetensors";
  const Path tensors = place.string() + ".safetensors";  // of "m/r8-0004", as messages name a checkpoint
  return is_checkpoint_file(tensors) ? tensors : place;
}

Path weights_on_this_machine(const Path& place, const SharedStore& store) {
  if (!is_far(place)) return file_of_weights(place);
  const HashedUrl wanted = parse(place.string());
  Path copy = user_cache_folder() / "weights" / wanted.sha256 / wanted.name();
  if (std::filesystem::exists(copy)) return copy;  // a name that only a checked copy gets
  make_folder(copy.parent_path());
  const FileDescriptor lock = lock_beside(copy.parent_path());
  if (!std::filesystem::exists(copy)) download(wanted, copy, store);
  return copy;
}

}  // namespace dtrain::train
