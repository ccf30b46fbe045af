#include <dtrain/base/file_exists.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain {

bool file_exists(const Path& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) throw Error(fmt::format("{}: cannot look for it: {}", path.string(), error.message()));
  return exists;
}

Path existing_folder(Path folder, std::error_code& error) {
  while (std::filesystem::status(folder, error).type() == std::filesystem::file_type::not_found &&
         folder != folder.parent_path())
    folder = folder.parent_path();
  return folder;
}

}  // namespace dtrain
