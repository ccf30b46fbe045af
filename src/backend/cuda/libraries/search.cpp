#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <dtrain/base/text.hpp>

namespace dtrain::backend::cuda {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> folders;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) folders.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool is_there(const Path& file) {
  std::error_code none;
  return std::filesystem::is_regular_file(file, none);
}

}  // namespace

std::string Version::text() const { return fmt::format("{}.{}.{}", major, minor, patch); }

SearchPlaces places_of_environment() {
  SearchPlaces places;
  places.own = variable("DTRAIN_CUDA_PATH");
  places.loader = variable("LD_LIBRARY_PATH");
  return places;
}

std::vector<std::string> search_folders(const SearchPlaces& places, const LibraryWanted& wanted) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    const std::string name = std::filesystem::absolute(folder).lexically_normal().string();
    if (std::ranges::find(folders, name) == folders.end()) folders.push_back(name);
  };
  for (const std::string& own : split(places.own)) {
    for (const char* below : {"", "/lib64", "/lib"}) add(own + below);
    for (const std::string& package : {wanted.wheel, std::string("cu13")}) {
      add(fmt::format("{}/nvidia/{}/lib", own, package));
      add(fmt::format("{}/{}/lib", own, package));
    }
  }
  for (const std::string& folder : split(places.loader)) add(folder);
  for (const std::string& folder : places.usual) add(folder);
  return folders;
}

CudaLibrary find_library(const LibraryWanted& wanted, const std::vector<std::string>& folders, ProbeFile probe) {
  CudaLibrary found{.name = wanted.name, .file = {}, .version = {}, .problem = {}, .hint = {}};
  for (const std::string& folder : folders) {
    const Path file = Path(folder) / wanted.file;
    if (!is_there(file)) continue;
    const Probe answer = probe(file);
    std::string problem = answer.problem;
    if (answer.version && problem.empty()) {
      if (answer.version->major == wanted.at_least.major && *answer.version >= wanted.at_least) {
        return {
            .name = wanted.name, .file = file.string(), .version = answer.version->text(), .problem = {}, .hint = {}};
      }
      problem = fmt::format("is version {}, this dtrain needs {} or a newer {}", answer.version->text(),
                            wanted.at_least.text(), wanted.at_least.major);
    }
    if (found.problem.empty()) found.problem = fmt::format("{} {}", file.string(), problem);
  }
  if (found.problem.empty()) found.problem = fmt::format("{} is missing: no {} was found", wanted.name, wanted.file);
  found.hint = wanted.hint;
  return found;
}

}  // namespace dtrain::backend::cuda
