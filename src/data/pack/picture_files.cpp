#include <dtrain/data/picture_files.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include <dtrain/base/descriptor_io.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/remote.hpp>

#include "archive/safe_names.hpp"
#include "pictures.hpp"
#include "record/file_patterns.hpp"

namespace dtrain::data {
namespace {

using Store = std::shared_ptr<net::ObjectStore>;

constexpr std::uint64_t kLargestPicture = 1u << 30;  // behind a URL

Store or_own(const Store& store) { return store ? store : std::make_shared<net::ObjectStore>(); }

// Also of a kind that dtrain does not read, so that reading it says so.
bool is_named_as_picture(const Path& file) { return is_picture(file) || is_unread_picture(file.extension().string()); }

// Hidden files, such as ._1.jpg of macOS, are of other programs.
bool is_meant_for_picture(const Path& file) {
  return is_named_as_picture(file) && !file.filename().string().starts_with('.');
}

// A damaged picture is not passed over in silence.
bool counts_as_picture(const Path& file) { return is_meant_for_picture(file) || begins_as_picture(file); }

// A picture whose link is broken is not passed over either.
void note_lost_picture(const Path& file, FoundPictures& found) {
  if (!is_meant_for_picture(file)) return;
  if (const std::string why = lost_link(file); !why.empty())
    found.problems.push_back(fmt::format("{}: {}", file.string(), why));
}

// Lists folder by folder, so that one that cannot be read hides no other. Links are followed once all folders are
// listed, and no folder is listed twice: links may lead back, and their number multiplies with their depth. A link to a
// folder that contains the one that was asked for is not followed: it would list what lies beside that.
class PictureWalk {
 public:
  explicit PictureWalk(const Path& folder) : links_{folder} {
    std::error_code error;
    asked_ = std::filesystem::canonical(folder, error);
    while (!links_.empty()) {
      std::vector<Path> round = std::exchange(links_, {});
      std::ranges::sort(round);
      for (const Path& link : round) list(link);
    }
    std::sort(found_.files.begin(), found_.files.end(), naturally_less);
    std::ranges::sort(found_.problems);
  }

  FoundPictures found() && { return std::move(found_); }

 private:
  bool contains_asked(const Path& real) const {
    const Path below = asked_.lexically_relative(real);
    return !below.empty() && below != "." && *below.begin() != "..";
  }

  void list(const Path& folder) {
    std::error_code error;
    const Path real = std::filesystem::canonical(folder, error);
    if (!error && (contains_asked(real) || !listed_.insert(real).second)) return;
    std::filesystem::directory_iterator entry(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) take(*entry);
    if (error)
      found_.problems.push_back(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  }

  void take(const std::filesystem::directory_entry& entry) {
    std::error_code gone;
    if (entry.is_directory(gone)) {
      if (entry.is_symlink(gone)) return links_.push_back(entry.path());
      return list(entry.path());
    }
    if (!entry.is_regular_file(gone)) return note_lost_picture(entry.path(), found_);
    if (counts_as_picture(entry.path())) found_.files.push_back(entry.path());
  }

  FoundPictures found_{};
  std::set<Path> listed_{};  // without links
  std::vector<Path> links_;
  Path asked_;  // without links
};

FoundPictures pictures_below(const Path& folder) {
  FoundPictures found = PictureWalk(folder).found();
  if (found.files.empty() && found.problems.empty()) {
    throw DataError(fmt::format("{}: no picture in this folder or below it", folder.string()),
                    fmt::format("dtrain reads {} files, by their content", kImagesRead));
  }
  return found;
}

// Whether the URL stands for what is below it. Where that cannot be seen, reading it says why.
bool is_far_folder(const std::string& url, net::ObjectStore& store) {
  if (url.ends_with('/') || net::parse_s3_url(url).key.empty()) return true;
  if (is_named_as_picture(url)) return false;
  try {
    return !store.find(url);
  } catch (const net::AwsError&) {
    return false;
  }
}

std::vector<Path> far_pictures(const std::string& url, const Store& store) {
  if (!net::is_s3_url(url)) return {url};
  if (is_pattern(url)) return far_matches(url, *store);
  if (!is_far_folder(url, *store)) return {url};
  std::vector<Path> files = far_files(url.ends_with('/') ? url : url + "/", *store);
  std::erase_if(files, [](const Path& file) { return !is_named_as_picture(file); });
  return files;
}

// False where something of that name is there.
bool write_new_file(const Path& file, const std::string& content) {
  const FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd && errno == EEXIST) return false;
  if (fd && write_all(fd, bytes_of(content)) == content.size()) return true;
  const std::string why = std::strerror(errno);
  if (fd) ::unlink(file.c_str());
  throw Error(fmt::format("{}: cannot write: {}", file.string(), why));
}

bool has_content(const Path& file, const std::string& content) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) != content.size())
    return false;
  return read_file(file) == content;
}

}  // namespace

bool begins_as_picture(const Path& file) {
  std::error_code gone;
  if (std::filesystem::file_size(file, gone) == 0 || gone) return false;
  std::array<char, 16> first{};
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return true;
  stream.read(first.data(), first.size());
  return detect_encoding(bytes_of({first.data(), static_cast<std::size_t>(stream.gcount())})).has_value();
}

FoundPictures find_pictures(const std::string& spec, const Store& store) {
  if (spec.empty()) throw UsageError("the name of a picture is empty");
  std::error_code error;
  if (is_remote(spec)) {
    std::vector<Path> files = far_pictures(spec, net::is_s3_url(spec) ? or_own(store) : store);
    if (files.empty()) throw DataError(fmt::format("{}: no picture has such a name", spec));
    return {.files = std::move(files), .problems = {}};
  }
  const auto status = std::filesystem::status(spec, error);
  if (std::filesystem::is_directory(status)) return pictures_below(spec);
  if (std::filesystem::exists(status)) return {.files = {spec}, .problems = {}};
  if (const std::string why = lost_link(spec); !why.empty()) throw DataError(fmt::format("{}: {}", spec, why));
  FoundPictures found;
  for (Path& file : is_pattern(spec) ? matches(spec) : std::vector<Path>()) {
    if (std::filesystem::is_regular_file(file, error)) {
      found.files.push_back(std::move(file));
    } else {
      note_lost_picture(file, found);
    }
  }
  if (found.files.empty() && found.problems.empty()) throw DataError(fmt::format("{}: no such file or folder", spec));
  return found;
}

std::string read_picture(const Path& file, const Store& store) {
  if (!is_remote(file)) {
    std::error_code error;
    const bool is_file = std::filesystem::is_regular_file(file, error);
    if (!is_file) throw DataError(fmt::format("{}: {}", file.string(), error ? error.message() : "is no file"));
    std::string content = read_file(file);
    if (content.empty()) throw DataError(file.string() + ": the file is empty");
    return content;
  }
  const Store used = or_own(store);
  const auto state = used->find(file.string());
  if (!state) throw DataError(file.string() + ": is not there");
  return used->content(file.string(), *state, kLargestPicture);
}

bool can_add_file(const Path& name) { return stays_inside(name.string()); }

Path add_new_file(const Path& folder, const Path& name, const std::string& content) {
  check_stays_inside(name.string(), folder.string());
  const Path wanted = folder / name;
  make_folder(wanted.parent_path());
  for (int number = 1;; ++number) {
    const std::string count = number == 1 ? "" : fmt::format("-{}", number);
    Path file = wanted.parent_path() / (wanted.stem().string() + count + wanted.extension().string());
    if (has_content(file, content) || write_new_file(file, content)) return file;
  }
}

}  // namespace dtrain::data
