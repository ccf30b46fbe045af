#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>

#include "codec/idx_array.hpp"
#include "pack/flat_pictures.hpp"
#include "pack/pictures.hpp"

namespace dtrain::data {
namespace {

// n, h, w and perhaps c last.
Image shape_of(const IdxArray& images) {
  const auto& shape = images.shape;
  const std::uint64_t c = shape.size() == 4 ? shape[3] : 1;
  if (c == 1 || c == 3) return {static_cast<int>(c), static_cast<int>(shape[1]), static_cast<int>(shape[2]), {}};
  throw DataError(fmt::format("{}: its images have {} channels, not 1 or 3", images.file.name, c));
}

class IdxStore : public PictureStore {
 public:
  IdxStore(IdxArray images, IdxArray labels, std::string stamp)
      : images_(std::move(images)), labels_(std::move(labels)), shape_(shape_of(images_)), stamp_(std::move(stamp)) {
    if (images_.shape[0] == labels_.shape[0]) return;
    throw DataError(fmt::format("{}: has {} images, but {} has {} labels", images_.file.name, images_.shape[0],
                                labels_.file.name, labels_.shape[0]),
                    "take both files from the same place");
  }

  PackList list() const {
    PackList list;
    const std::string name = Path(images_.file.name).filename().string();
    for (std::uint64_t i = 0; i < labels_.values.size(); ++i) {
      list.items.push_back({i, {static_cast<float>(labels_.values[i])}, fmt::format("{}:{}", name, i), i});
    }
    return list;
  }

  SourceBytes read(const PackItem& item) const override {
    Image image = shape_;
    const std::size_t size = images_.values.size() / images_.shape[0];
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(images_.values.data() + item.place * size);
    image.pixels.assign(pixels, pixels + size);
    return flat_picture(item.file, image);
  }
  std::string stamp(const PackItem&) const override { return stamp_; }

 private:
  IdxArray images_, labels_;
  Image shape_;
  std::string stamp_;
};

// train-images-idx3-ubyte -> train-labels-idx1-ubyte, packed or not.
std::optional<Path> labels_beside(const Path& images) {
  std::string name = images.filename().string();
  const std::size_t word = name.find("images"), dimensions = name.find("idx");
  if (word == name.npos || dimensions == name.npos || dimensions + 3 >= name.size()) return std::nullopt;
  name[dimensions + 3] = '1';
  name.replace(word, 6, "labels");
  const std::string plain = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
  for (const std::string& each : {name, plain, plain + ".gz"}) {
    const Path labels = images.parent_path() / each;
    if (std::filesystem::exists(labels)) return labels;
  }
  return std::nullopt;
}

[[noreturn]] void refuse() {
  throw UsageError("IDX files come in pairs: the images, and their labels in a file of one dimension",
                   "name both: train-images-idx3-ubyte train-labels-idx1-ubyte");
}

}  // namespace

Pictures open_idx(const std::vector<Path>& files) {
  std::vector<Path> pair = files;
  if (pair.size() == 1) {
    const auto labels = labels_beside(pair.front());
    if (labels) pair.push_back(*labels);
  }
  if (pair.size() != 2) refuse();
  std::string stamp;
  std::vector<SourceBytes> bytes;
  for (const Path& file : pair) {
    bytes.push_back(open_idx_file(file));
    stamp += file_stamp(file) + " ";
  }
  if (idx_dimensions(bytes[0].bytes) == 1) std::swap(bytes[0], bytes[1]);
  const std::size_t dimensions = idx_dimensions(bytes[0].bytes);
  if (dimensions < 3 || idx_dimensions(bytes[1].bytes) != 1) refuse();
  auto store = std::make_unique<IdxStore>(parse_idx(bytes[0], dimensions), parse_idx(bytes[1], 1), stamp);
  PackList list = store->list();
  return {std::move(list), std::move(store), pair};
}

}  // namespace dtrain::data
