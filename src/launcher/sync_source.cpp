// Reads what is to be copied: a file, or a folder with everything below it.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/launcher/sync.hpp>

namespace dtrain::launcher {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kPermissions = 0777;

SyncFile file_of(const Path& path, std::string name) {
  const auto mode = static_cast<unsigned>(fs::status(path).permissions()) & kPermissions;
  return {std::move(name), path, mode, sha256_hex(MappedFile(path).bytes())};
}

bool is_excluded(const std::string& name, const std::vector<std::string>& patterns) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), last.c_str(), 0) == 0 || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

void walk(const Path& folder, const std::string& below, const std::vector<std::string>& excluded, SyncTree& tree) {
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), fs::directory_iterator{});
  std::ranges::sort(entries);
  for (const fs::directory_entry& entry : entries) {
    const std::string name = below + entry.path().filename().string();
    if (is_excluded(name, excluded)) continue;
    if (entry.is_regular_file()) {
      tree.files.push_back(file_of(entry.path(), name));
    } else if (entry.is_directory() && !entry.is_symlink()) {
      tree.folders.push_back(name);
      walk(entry.path(), name + "/", excluded, tree);
    } else {
      tree.skipped.push_back(fmt::format("{}: {}", name, entry.is_symlink() ? "a link to no file" : "no file"));
    }
  }
}

}  // namespace

SyncTree read_tree(const Path& source, const std::vector<std::string>& excluded) {
  if (!fs::exists(source)) throw UsageError(fmt::format("{}: no such file or folder", source.string()));
  SyncTree tree;
  tree.is_folder = fs::is_directory(source);
  try {
    if (tree.is_folder) {
      walk(source, "", excluded, tree);
    } else {
      tree.files.push_back(file_of(source, source.filename().string()));
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(fmt::format("{}: {}", source.string(), error.code().message()));
  }
  return tree;
}

}  // namespace dtrain::launcher
