#include "fingerprint.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>

namespace dtrain::job {
namespace {

constexpr std::size_t kShown = 8;
// Libraries whose arithmetic affects weights.
constexpr std::array<std::string_view, 4> kComputing = {"libdnnl.so", "libcudnn", "libcublas", "libnccl.so"};

struct Image {
  std::string name;   // empty: the program
  std::string build;  // hexadecimal; empty: the linker left none
};

// The linker's note with a hash of everything linked (GNU build ID).
std::string build_in(const dl_phdr_info& info, const ElfW(Phdr) & segment) {
  const char* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
  const char* const end = at + segment.p_memsz;
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (static_cast<std::size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, at, sizeof note);
    const char* const name = at + sizeof note;
    const char* const content = name + padded(note.n_namesz);
    const bool is_build = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0;
    if (is_build) return to_hex({content, note.n_descsz});
    at = content + padded(note.n_descsz);
  }
  return {};
}

int add_image(dl_phdr_info* info, std::size_t, void* user) {
  Image image{info->dlpi_name, {}};
  for (int i = 0; i < info->dlpi_phnum && image.build.empty(); ++i) {
    if (info->dlpi_phdr[i].p_type == PT_NOTE) image.build = build_in(*info, info->dlpi_phdr[i]);
  }
  static_cast<std::vector<Image>*>(user)->push_back(std::move(image));
  return 0;
}

std::string build_of(const Image& image) {
  if (!image.build.empty()) return image.build.substr(0, kShown);
  const Path file = image.name.empty() ? Path("/proc/self/exe") : Path(image.name);
  return sha256_hex(MappedFile(file).bytes()).substr(0, kShown);
}

bool computes(const std::string& file) {
  return std::ranges::any_of(kComputing, [&](std::string_view name) { return file.starts_with(name); });
}

}  // namespace

std::string fingerprint_of(const TrainRun& run) {
  std::vector<Image> images;
  ::dl_iterate_phdr(add_image, &images);
  std::string text;
  for (const Image& image : images) {
    const std::string file = Path(image.name).filename().string();
    if (image.name.empty() && text.empty()) text = fmt::format("dtrain {} build {}", DTRAIN_VERSION, build_of(image));
    if (computes(file)) text += fmt::format(" with {} build {}", file, build_of(image));
  }
  return fmt::format("{}, {}, {}", text, run.backend->description(), backend::dtype_name(run.dtype));
}

}  // namespace dtrain::job
