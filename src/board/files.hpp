// The files of runs, on this machine or behind s3://: what is there, how long it is, and pieces of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/link_free_folder.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::board {

// What the folder of a training's records is called after the prefix of its checkpoints, as of job::folder_of_prefix().
inline constexpr std::string_view kRunSuffix = "-run";

struct FoundRuns {
  std::vector<std::string> folders{};
  std::string complaint{};  // why there may be more; empty: these are all
};

// A path is that of a file on this machine, or an s3:// URL, at or below the root: what stands elsewhere, or behind a
// symbolic link below the root, is not there. One thread at a time. size(), version() and read() throw Error for what
// is there and cannot be read, so that it is not taken for what is not there.
class Files {
 public:
  virtual ~Files() = default;
  // Folders at and below the root that hold events.jsonl or steps.jsonl: on this machine up to 16 levels below it, and
  // no folders that this user may not read. Looks at the world anew.
  virtual FoundRuns find_runs() = 0;
  // nullopt: there is no such file.
  virtual std::optional<std::uint64_t> size(const std::string& path) = 0;
  // Another one once the file was written anew, also where its size stays; empty: there is no such file.
  virtual std::string version(const std::string& path) = 0;
  // At most so many bytes from there on; fewer where the file ends, and none where it is gone.
  virtual std::string read(const std::string& path, std::uint64_t from, std::uint64_t most) = 0;
  virtual std::vector<ListedFile> list(const std::string& folder) = 0;  // files only, by name
  virtual bool is_local() const = 0;
};

// `root`: a folder, a prefix of checkpoints (PREFIX for PREFIX-run), or an s3:// URL; the first two may be links.
// `store` is for the last of these, `most_folders` limits the others: so many are searched for runs.
std::unique_ptr<Files> open_files(const std::string& root, const std::shared_ptr<net::ObjectStore>& store,
                                  std::size_t most_folders = 20'000);

// The whole of a small file; empty where there is none.
std::string read_small(Files& files, const std::string& path);

}  // namespace dtrain::board
