#include <utility>

#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>

#include "set_document.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kLargestList = std::uint64_t{1} << 30;  // behind a URL

std::string content_of_list(const Path& lst, net::ObjectStore& store) {
  std::error_code error;
  if (!is_remote(lst)) return std::filesystem::is_regular_file(lst, error) ? read_file(lst) : std::string();
  const auto state = net::is_s3_url(lst.string()) ? store.find(lst.string()) : std::nullopt;
  return state ? store.content(lst.string(), *state, kLargestList) : std::string();
}

struct ListedPicture {
  std::string id, file;
};

std::vector<ListedPicture> listed_pictures(const std::string& text) {
  std::vector<ListedPicture> pictures;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> parts = split(trim(line), '\t');
    if (parts.size() >= 3) pictures.push_back({parts.front(), parts.back()});
  }
  return pictures;
}

// Rows and records have the same order. Rows that stay of another set show by their number, or at its ends.
bool fits(const std::vector<ListedPicture>& pictures, const RecordFile& file) {
  if (pictures.size() != file.size()) return false;
  const auto has_id = [&](std::size_t position) {
    return std::to_string(file.read(position).id) == pictures[position].id;
  };
  return has_id(0) && has_id(pictures.size() - 1);
}

}  // namespace

std::vector<std::string> listed_files(const RecordSet& set, const std::shared_ptr<net::ObjectStore>& store) {
  const std::shared_ptr<net::ObjectStore> used = store ? store : std::make_shared<net::ObjectStore>();
  std::vector<std::string> files;
  for (const RecordFile& file : set.files()) {
    const std::vector<ListedPicture> pictures = advice_of([&] {
      const std::string text = content_of_list(Path(file.path()).replace_extension(".lst"), *used);
      std::vector<ListedPicture> listed = listed_pictures(text);
      return fits(listed, file) ? std::move(listed) : std::vector<ListedPicture>();
    });
    const std::size_t end = files.size() + file.size();
    for (const ListedPicture& picture : pictures) files.push_back(picture.file);
    files.resize(end);
  }
  return files;
}

}  // namespace dtrain::data
