// Reads what is to be copied: a file, or a folder with everything below it.
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_pieces.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/launcher/sync.hpp>

namespace dtrain::launcher {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kPermissions = 0777;
// A file system may see two changes at one time. A file counts as unchanged only if its last change was that long ago.
constexpr std::chrono::nanoseconds kSettled = std::chrono::seconds(2);

std::int64_t nanoseconds_of(const timespec& time) {
  return std::chrono::nanoseconds(std::chrono::seconds(time.tv_sec)).count() + time.tv_nsec;
}

SyncSource::FileFacts facts_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = nanoseconds_of(status.st_mtim),
          .changed = nanoseconds_of(status.st_ctim)};
}

bool is_settled(const SyncSource::FileFacts& facts) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(std::max(facts.modified, facts.changed)) + kSettled < now;
}

bool is_left_out(const std::string& name, const LeftOut& left_out) {
  if (std::ranges::find(left_out.paths, name) != left_out.paths.end()) return true;
  const std::string last = name.substr(name.rfind('/') + 1);
  return std::ranges::any_of(left_out.patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), last.c_str(), 0) == 0 || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

std::string why_skipped(const fs::directory_entry& entry, fs::file_type type, const std::error_code& error) {
  if (!entry.is_symlink()) return "no file";
  if (type == fs::file_type::directory) return "a link to a folder";
  if (!error || type == fs::file_type::not_found) return "a link to no file";
  return fmt::format("a link that cannot be followed: {}", error.message());
}

// With all permissions of the owner, whose later copies go there too.
unsigned mode_of_folder(const fs::directory_entry& entry) {
  std::error_code gone;
  const fs::file_status status = entry.status(gone);
  return gone ? SyncFolder{}.mode : (static_cast<unsigned>(status.permissions()) & kPermissions) | 0700;
}

// One pass over the source. Takes the hashes of files that did not change from `known`.
class Reading {
 public:
  Reading(const LeftOut& left_out, const SyncSource::Hashes& known, const std::stop_token& stop)
      : left_out_(left_out), known_(known), stop_(stop) {}

  void read(const Path& source) {
    try {
      if (!fs::exists(source)) throw UsageError(fmt::format("{}: no such file or folder", source.string()));
      tree_.is_folder = fs::is_directory(source);
      if (tree_.is_folder) {
        walk(source, "");
      } else {
        add_file(source, source.filename().string());
      }
    } catch (const fs::filesystem_error& error) {
      const Path& at = error.path1().empty() ? source : error.path1();
      throw Error(fmt::format("{}: {}", at.string(), error.code().message()));
    }
  }
  SyncTree take_tree() { return std::move(tree_); }
  SyncSource::Hashes take_hashes() { return std::move(hashes_); }

 private:
  void walk(const Path& folder, const std::string& below) {
    std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), fs::directory_iterator{});
    std::ranges::sort(entries);
    for (const fs::directory_entry& entry : entries) {
      const std::string name = below + entry.path().filename().string();
      if (!is_left_out(name, left_out_)) add(entry, name);
    }
  }

  void add(const fs::directory_entry& entry, const std::string& name) {
    std::error_code error;
    const fs::file_type type = entry.status(error).type();
    if (type == fs::file_type::regular) {
      add_file(entry.path(), name);
    } else if (type == fs::file_type::directory && !entry.is_symlink()) {
      tree_.folders.push_back({name, mode_of_folder(entry)});
      walk(entry.path(), name + "/");
    } else if (type == fs::file_type::not_found && !entry.is_symlink()) {  // it was removed meanwhile
      return;
    } else if (error && !entry.is_symlink()) {
      throw Error(fmt::format("{}: {}", entry.path().string(), error.message()));
    } else {
      tree_.skipped.push_back(fmt::format("{}: {}", name, why_skipped(entry, type, error)));
    }
  }

  void add_file(const Path& path, const std::string& name) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw fs::filesystem_error("stat", path, {errno, std::generic_category()});
    const SyncSource::FileFacts facts = facts_of(status);
    const auto known = known_.find(name);
    const bool is_known = known != known_.end() && known->second.facts == facts;
    const std::string hash = is_known ? known->second.sha256 : hash_of(path);
    if (is_known || is_settled(facts)) hashes_[name] = {facts, hash};
    tree_.files.push_back({name, path, static_cast<unsigned>(status.st_mode) & kPermissions, hash});
  }

  std::string hash_of(const Path& path) const {
    FilePieces file(path);
    Sha256 hash;
    for (std::string_view piece; !(piece = file.next()).empty(); hash.update(bytes_of(piece))) {
      if (stop_.stop_requested()) throw Stopped("the files to copy are not read to the end");
    }
    return hash.hex();
  }

  const LeftOut& left_out_;
  const SyncSource::Hashes& known_;
  const std::stop_token& stop_;
  SyncTree tree_;
  SyncSource::Hashes hashes_;
};

}  // namespace

SyncTree read_tree(const Path& source, const LeftOut& left_out) {
  const SyncSource::Hashes none;
  const std::stop_token never;
  Reading reading(left_out, none, never);
  reading.read(source);
  return reading.take_tree();
}

std::shared_ptr<const SyncTree> SyncSource::tree_since(Clock::time_point time, const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  if (tree_ && read_at_ >= time) return tree_;
  const Clock::time_point begin = Clock::now();
  Reading reading(left_out_, hashes_, stop);
  reading.read(source_);
  hashes_ = reading.take_hashes();
  tree_ = std::make_shared<const SyncTree>(reading.take_tree());
  read_at_ = begin;
  return tree_;
}

}  // namespace dtrain::launcher
