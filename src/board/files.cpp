#include "files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

constexpr int kDepth = 16;
constexpr std::chrono::seconds kLongestSearch{5};  // no page is served meanwhile
constexpr std::size_t kMostListed = 20'000;        // files of a folder
constexpr std::uint64_t kSmall = 4 << 20;

bool is_record(std::string_view name) { return name == "events.jsonl" || name == "steps.jsonl"; }

// Folders of a run that dtrain fills itself, in which no run stands.
bool is_inner(std::string_view name) { return name == "logs" || name == "ledger" || name == "gen"; }

bool is_absence(int error) { return error == ENOENT || error == ENOTDIR; }

class LocalFiles final : public Files {
 public:
  LocalFiles(const Path& root, std::size_t most_folders)
      : root_(root),
        beside_(root.string() + std::string(kRunSuffix)),
        below_(root_),
        below_beside_(beside_),
        most_folders_(most_folders) {}

  FoundRuns find_runs() override {
    FoundRuns found = search(root_, kDepth);
    if (found.folders.empty() && std::filesystem::is_directory(beside_, ignored_)) found = search(beside_, 0);
    std::ranges::sort(found.folders);
    return found;
  }

  std::optional<std::uint64_t> size(const std::string& path) override {
    const auto status = with(path).status(path);
    return status ? std::optional(static_cast<std::uint64_t>(status->st_size)) : std::nullopt;
  }

  std::string version(const std::string& path) override {
    const auto status = with(path).status(path);
    if (!status) return {};
    return fmt::format("{} {} {}.{}", status->st_ino, status->st_size, status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
  }

  std::string read(const std::string& path, std::uint64_t from, std::uint64_t most) override {
    return with(path).read(path, from, most).value_or("");
  }

  std::vector<ListedFile> list(const std::string& folder) override {
    std::vector<ListedFile> files = with(folder).list(folder, kMostListed);
    std::ranges::sort(files, {}, &ListedFile::name);
    return files;
  }

  bool is_local() const override { return true; }

 private:
  const LinkFreeFolder& with(const std::string& path) const { return below_beside_.has(path) ? below_beside_ : below_; }

  // Level by level, so that runs near the top are found however much is below their neighbours.
  FoundRuns search(const Path& top, int depth) {
    FoundRuns found;
    std::size_t seen = 0;
    const auto until = std::chrono::steady_clock::now() + kLongestSearch;
    for (std::vector<Path> level{top}, below; !level.empty(); level = std::exchange(below, {}), --depth) {
      for (const Path& folder : level) {
        if (++seen > most_folders_ || std::chrono::steady_clock::now() > until) {
          found.complaint = fmt::format(
              "{}: runs may be missing, because the search ended after {} folders; name the folders that hold the runs",
              top.string(), seen - 1);
          return found;
        }
        std::vector<Path> inside = look_into(folder, found);
        if (depth > 0 && below.size() <= most_folders_) std::ranges::move(inside, std::back_inserter(below));
      }
    }
    return found;
  }

  // The folders in it that may hold runs.
  std::vector<Path> look_into(const Path& folder, FoundRuns& found) {
    bool is_run = false;
    std::vector<Path> inside;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (is_record(name) && entry->is_regular_file(ignored_) && !entry->is_symlink(ignored_)) is_run = true;
      if (!name.starts_with('.') && entry->is_directory(ignored_) && !entry->is_symlink(ignored_))
        inside.push_back(entry->path());
    }
    const bool is_private = error.value() == EACCES && folder != root_;
    if (error && !is_absence(error.value()) && !is_private)
      found.complaint = fmt::format("{}: cannot be listed: {}", folder.string(), error.message());
    if (!is_run) return inside;
    found.folders.push_back(folder.string());
    std::erase_if(inside, [](const Path& path) { return is_inner(path.filename().string()); });
    return inside;
  }

  const Path root_, beside_;
  const LinkFreeFolder below_, below_beside_;
  const std::size_t most_folders_;
  std::error_code ignored_;
};

// The list of the last look says what is there and how long it is: each question would be a request.
class ObjectFiles final : public Files {
 public:
  ObjectFiles(std::string root, std::shared_ptr<net::ObjectStore> store)
      : root_(std::move(root)), store_(std::move(store)) {
    while (root_.ends_with('/')) root_.pop_back();
  }

  FoundRuns find_runs() override {
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
    return {.folders = {runs.begin(), runs.end()}};
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

std::unique_ptr<Files> open_files(const std::string& root, const std::shared_ptr<net::ObjectStore>& store,
                                  std::size_t most_folders) {
  if (net::is_s3_url(root)) return std::make_unique<ObjectFiles>(root, store);
  const Path whole = std::filesystem::absolute(root).lexically_normal();
  return std::make_unique<LocalFiles>(whole.has_filename() ? whole : whole.parent_path(), most_folders);
}

std::string read_small(Files& files, const std::string& path) {
  const auto size = files.size(path);
  return size && *size <= kSmall ? files.read(path, 0, *size) : std::string();
}

}  // namespace dtrain::board
