#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/pack.hpp>

#include "data/archive/archive_files.hpp"
#include "data/dataset/photographs.hpp"
#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

// Lists what the file holds and reads every picture.
std::function<void(const std::string&)> reads(const Path& file, data::PictureFormat format) {
  return [=](const std::string& input) {
    write_quickly(file, input);
    const data::Pictures pictures = data::open_pictures({.sources = {file}, .format = format});
    for (const data::PackItem& item : pictures.list.items) pictures.store->read(item);
  };
}

}  // namespace

std::vector<Target> archive_targets(const Path& folder) {
  const data::NamedFiles files{
      {"a/1.jpg", "picture"}, {"a/1.cls", "3"}, {"b/2.png", "another"}, {"b/2.json", "{\"label\": 4}"}};
  const std::string idx("\0\0\x8\x3\0\0\0\1\0\0\0\2\0\0\0\2abcd", 20), labels("\0\0\x8\1\0\0\0\1\7", 9);
  const Path images = folder / "x-images-idx3-ubyte";
  write_quickly(folder / "x-labels-idx1-ubyte", labels);
  return {
      {"tar",
       {data::tar_of(files), data::tar_of({{"n01.tar", data::tar_of({{"n01_1.JPEG", "x"}})}})},
       reads(folder / "a.tar", data::PictureFormat::archive)},
      {"zip", {data::zip_of(files), data::zip_of(files, true)}, reads(folder / "a.zip", data::PictureFormat::archive)},
      {"idx", {idx}, reads(images, data::PictureFormat::idx)},
      {"synsets",
       {read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/synsets.mat")},
       [](const std::string& input) {
         data::read_synsets({"meta.mat", bytes_of(input), nullptr});
       }},
  };
}

}  // namespace dtrain::fuzz
