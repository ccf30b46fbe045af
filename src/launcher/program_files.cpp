#include <dtrain/launcher/program_files.hpp>

#include <algorithm>

#include <dtrain/base/process.hpp>

namespace dtrain::launcher {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr unsigned kModes = 0755;

ProgramFile file_of(std::string name, const Path& path) {
  return {.name = std::move(name),
          .path = path,
          .size = std::filesystem::file_size(path),
          .mode = static_cast<unsigned>(std::filesystem::status(path).permissions()) & kModes};
}

}  // namespace

// "FOLDER/lib/ld-linux-x86-64.so.2 ... FOLDER/bin/dtrain", as packaging/launcher.cpp starts it.
Path bundle_of(const std::vector<std::string>& command) {
  if (command.size() == 1) return {};
  const Path folder = std::filesystem::absolute(command.back()).parent_path().parent_path();
  return std::filesystem::exists(folder / "dtrain") ? folder : Path();
}

std::vector<ProgramFile> bundle_files(const Path& bundle) {
  std::vector<ProgramFile> files;
  for (const char* name : {"dtrain", "bin/dtrain"}) files.push_back(file_of(name, bundle / name));
  for (const auto& entry : std::filesystem::directory_iterator(bundle / "lib")) {
    if (entry.is_regular_file()) files.push_back(file_of("lib/" + entry.path().filename().string(), entry.path()));
  }
  std::ranges::sort(files, {}, &ProgramFile::name);
  return files;
}

std::vector<ProgramFile> program_files() {
  const Path bundle = bundle_of(own_command());
  if (!bundle.empty()) return bundle_files(bundle);
  return {file_of("dtrain", std::filesystem::read_symlink(kSelf))};
}

}  // namespace dtrain::launcher
