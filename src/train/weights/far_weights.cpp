#include "far_weights.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <tuple>
#include <vector>

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
  // That of the copy. The ending stays, which may tell the format.
  std::string name() const {
    constexpr std::size_t kLongest = 128;
    const std::string shown = net::shown_url(url);
    std::string last = shown.substr(shown.rfind('/') + 1);
    if (last.size() > kLongest) last.erase(0, last.size() - kLongest);
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
  const std::string shown = net::shown_url(hashed.url);
  throw UsageError(fmt::format("{}: weights from a URL need their hash", shown),
                   fmt::format("name them {}{}HEX with the 64 digits that `sha256sum` prints, or copy the file to this "
                               "machine",
                               shown, kMark));
}

// What a download changes in its folder.
using FolderState = std::vector<std::tuple<Path, std::uintmax_t, std::filesystem::file_time_type>>;

FolderState state_of(const Path& folder) {
  FolderState state;
  std::error_code error, gone;
  for (std::filesystem::directory_iterator file(folder, error); !error && file != end(file); file.increment(error))
    state.emplace_back(file->path(), file->file_size(gone), file->last_write_time(gone));
  std::ranges::sort(state);
  return state;
}

// Waits while another thread or process downloads into the folder. The kernel releases the lock of one that ends,
// however it ends; one that was stopped or hangs keeps it. On a file system without locks, each goes on by itself.
FileDescriptor lock_beside(const Path& folder, const std::string& shown, const DownloadWait& wait) {
  constexpr auto kLookEvery = std::chrono::milliseconds(100);
  using Clock = std::chrono::steady_clock;
  const std::string file = folder.string() + ".lock";
  FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  const auto is_held = [&] {
    return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR);
  };
  if (!is_held()) return lock;
  if (wait.tell) wait.tell(fmt::format("Waiting for another process that downloads {} and holds {}", shown, file));
  FolderState seen = state_of(folder);
  auto changed = Clock::now();
  do {
    if (!pause_unless_stopped(kLookEvery))
      throw Stopped(folder.string() + ": stopped while another process downloads weights there");
    FolderState now = state_of(folder);
    if (now != seen) changed = Clock::now();
    seen = std::move(now);
    if (Clock::now() - changed < wait.quiet) continue;
    throw Error(fmt::format("{}: another process, which holds {}, has downloaded nothing of it for {} seconds", shown,
                            file, std::chrono::duration_cast<std::chrono::seconds>(wait.quiet).count()),
                fmt::format("end that process, which `fuser {}` names, and run the same command again", file));
  } while (is_held());
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
  std::error_code error;
  // MXNet's parameters lie beside the tensors that they were made of, whose manifest knows more.
  const bool is_beside = place.extension() == ".json" || place.extension() == ".params";
  const Path manifest = Path(place).replace_extension(".json");
  if (is_beside && !is_far(place) && is_checkpoint_file(manifest)) return Path(place).replace_extension(".safetensors");
  if (is_far(place) || std::filesystem::is_regular_file(place, error)) return place;
  const std::vector<CheckpointName> checkpoints = list_checkpoints(place);
  if (!checkpoints.empty()) return checkpoints.front().stem() + ".safetensors";
  const Path tensors = place.string() + ".safetensors";  // of "m/r8-0004", as messages name a checkpoint
  return is_checkpoint_file(tensors) ? tensors : place;
}

Path weights_on_this_machine(const Path& place, const SharedStore& store, const DownloadWait& wait) {
  if (!is_far(place)) return file_of_weights(place);
  const HashedUrl wanted = parse(place.string());
  Path copy = user_cache_folder() / "weights" / wanted.sha256 / wanted.name();
  if (std::filesystem::exists(copy)) return copy;  // a name that only a checked copy gets
  make_folder(copy.parent_path());
  const FileDescriptor lock = lock_beside(copy.parent_path(), net::shown_url(wanted.url), wait);
  if (!std::filesystem::exists(copy)) download(wanted, copy, store);
  return copy;
}

void fetch_weights(const Path& place, const std::function<void(const std::string&)>& tell, const SharedStore& store) {
  if (is_far(place)) weights_on_this_machine(place, store, {.tell = tell});
}

}  // namespace dtrain::train
