#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "codec/cifar_records.hpp"
#include "pack/flat_pictures.hpp"
#include "pack/pictures.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kInOneFile = 1ull << 32;  // place: number of the file * this + record

class CifarStore : public PictureStore {
 public:
  CifarStore(const std::vector<Path>& files, std::size_t label_bytes) : label_bytes_(label_bytes) {
    for (const Path& file : files) {
      files_.push_back(map_source(file));
      stamps_.push_back(file_stamp(file));
      const std::size_t size = files_.back().bytes.size();
      if (size > 0 && size % record() == 0) continue;
      throw DataError(fmt::format("{}: has {} bytes, no multiple of {}", file.string(), size, record()),
                      "it was cut short, or is not of CIFAR's binary version");
    }
  }

  PackList list() const {
    PackList list;
    for (std::size_t number = 0; number < files_.size(); ++number) {
      const std::string name = Path(files_[number].name).filename().string();
      for (std::uint64_t i = 0; i < files_[number].bytes.size() / record(); ++i) {
        const auto label = static_cast<float>(record_at(number, i)[label_bytes_ - 1]);
        list.items.push_back({list.items.size(), {label}, fmt::format("{}:{}", name, i), number * kInOneFile + i});
      }
    }
    return list;
  }

  SourceBytes read(const PackItem& item) const override {
    Image image;
    cifar_image(record_at(item.place / kInOneFile, item.place % kInOneFile).subspan(label_bytes_), image);
    return flat_picture(item.file, image);
  }
  std::string stamp(const PackItem& item) const override { return stamps_[item.place / kInOneFile]; }

 private:
  std::size_t record() const { return cifar_record(label_bytes_); }
  ByteView record_at(std::size_t number, std::uint64_t i) const {
    return files_[number].bytes.subspan(i * record(), record());
  }

  std::size_t label_bytes_;
  std::vector<SourceBytes> files_;
  std::vector<std::string> stamps_;
};

}  // namespace

Pictures open_cifar(const std::vector<Path>& files, std::size_t label_bytes) {
  auto store = std::make_unique<CifarStore>(files, label_bytes);
  return {store->list(), std::move(store)};
}

}  // namespace dtrain::data
