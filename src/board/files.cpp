#include "files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

constexpr int kDepth = 5;
constexpr std::size_t kMostFolders = 20'000;
constexpr std::uint64_t kSmall = 4 << 20;

bool is_record(std::string_view name) { return name == "events.jsonl" || name == "steps.jsonl"; }

// Folders that dtrain fills itself, in which no run stands.
bool is_inner(std::string_view name) {
  return name.starts_with('.') || name == "logs" || name == "ledger" || name == "gen";
}

class LocalFiles final : public Files {
 public:
  explicit LocalFiles(Path root) : root_(std::move(root)) {}

  std::vector<std::string> find_runs() override {
    std::vector<std::string> runs;
    std::size_t seen = 0;
    look(root_, 0, seen, runs);
    const Path beside = root_.string() + std::string(kRunSuffix);
    if (runs.empty() && std::filesystem::is_directory(beside, ignored_)) look(beside, kDepth, seen, runs);
    std::ranges::sort(runs);
    return runs;
  }

  std::optional<std::uint64_t> size(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return static_cast<std::uint64_t>(status.st_size);
  }

  std::string version(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    return fmt::format("{} {} {}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }

  std::string read(const std::string& path, std::uint64_t from, std::uint64_t most) override {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto length = file ? size(path) : std::nullopt;
    if (!length || *length <= from) return {};
    std::string bytes(std::min(most, *length - from), '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t count = ::pread(file.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(from + got));
      if (count <= 0) break;
      got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return bytes;
  }

  std::vector<ListedFile> list(const std::string& folder) override {
    std::vector<ListedFile> files;
    for (auto entry = std::filesystem::directory_iterator(folder, ignored_);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored_)) {
      if (const auto length = size(entry->path().string()))
        files.push_back({entry->path().filename().string(), *length});
      if (files.size() >= kMostFolders) break;
    }
    std::ranges::sort(files, {}, &ListedFile::name);
    return files;
  }

  bool is_local() const override { return true; }

 private:
  // A folder that cannot be read, or vanishes meanwhile, holds no runs.
  void look(const Path& folder, int depth, std::size_t& seen, std::vector<std::string>& runs) {
    if (++seen > kMostFolders) return;
    bool found = false;
    std::vector<Path> below;
    for (auto entry = std::filesystem::directory_iterator(folder, ignored_);
         entry != std::filesystem::directory_iterator(); entry.increment(ignored_)) {
      const std::string name = entry->path().filename().string();
      if (is_record(name)) found = true;
      if (depth < kDepth && !is_inner(name) && entry->is_directory(ignored_) && !entry->is_symlink(ignored_))
        below.push_back(entry->path());
    }
    if (found) runs.push_back(folder.string());
    for (const Path& next : below) look(next, depth + 1, seen, runs);
  }

  const Path root_;
  std::error_code ignored_;
};

// The list of the last look says what is there and how long it is: each question would be a request.
class ObjectFiles final : public Files {
 public:
  ObjectFiles(std::string root, std::shared_ptr<net::ObjectStore> store)
      : root_(std::move(root)), store_(std::move(store)) {
    while (root_.ends_with('/')) root_.pop_back();
  }

  std::vector<std::string> find_runs() override {
    objects_.clear();
    std::set<std::string> runs;
    const std::string bucket = "s3://" + net::parse_s3_url(root_).bucket + "/";
    store_->list(root_, [&](const net::ObjectEntry& entry) {
      const std::string url = bucket + entry.key;
      const std::size_t slash = url.rfind('/');
      objects_[url] = {.size = entry.size, .etag = entry.etag};
      const std::string folder = url.substr(0, slash);
      const bool below =
          folder == root_ || folder == root_ + std::string(kRunSuffix) || folder.starts_with(root_ + "/");
      if (below && is_record(std::string_view(url).substr(slash + 1))) runs.insert(folder);
    });
    return {runs.begin(), runs.end()};
  }

  std::optional<std::uint64_t> size(const std::string& path) override {
    const auto found = objects_.find(path);
    return found == objects_.end() ? std::nullopt : std::optional(found->second.size);
  }

  std::string version(const std::string& path) override {
    const auto found = objects_.find(path);
    return found == objects_.end() ? std::string() : fmt::format("{} {}", found->second.size, found->second.etag);
  }

  std::string read(const std::string& path, std::uint64_t from, std::uint64_t most) override {
    const auto found = objects_.find(path);
    if (found == objects_.end() || found->second.size <= from) return {};
    std::string bytes(std::min(most, found->second.size - from), '\0');
    try {
      store_->read(path, found->second, from, std::as_writable_bytes(std::span(bytes)));
    } catch (const DataError&) {  // it was replaced since the list was made: the next look shows the new one
      return {};
    }
    return bytes;
  }

  std::vector<ListedFile> list(const std::string& folder) override {
    std::vector<ListedFile> files;
    const std::string lead = folder + "/";
    for (auto next = objects_.lower_bound(lead); next != objects_.end() && next->first.starts_with(lead); ++next) {
      const std::string name = next->first.substr(lead.size());
      if (name.find('/') == name.npos) files.push_back({name, next->second.size});
    }
    return files;
  }

  bool is_local() const override { return false; }

 private:
  std::string root_;
  const std::shared_ptr<net::ObjectStore> store_;
  std::map<std::string, net::ObjectState> objects_;  // by URL
};

}  // namespace

std::unique_ptr<Files> open_files(const std::string& root, const std::shared_ptr<net::ObjectStore>& store) {
  if (net::is_s3_url(root)) return std::make_unique<ObjectFiles>(root, store);
  const Path whole = std::filesystem::absolute(root).lexically_normal();
  return std::make_unique<LocalFiles>(whole.has_filename() ? whole : whole.parent_path());
}

std::string read_small(Files& files, const std::string& path) {
  const auto size = files.size(path);
  return size && *size <= kSmall ? files.read(path, 0, *size) : std::string();
}

}  // namespace dtrain::board
