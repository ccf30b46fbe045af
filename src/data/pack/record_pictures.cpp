#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/record.hpp>

#include "checked_labels.hpp"
#include "pictures.hpp"
#include "record/find_records.hpp"

namespace dtrain::data {
namespace {

std::vector<Path> all_files(const PackOptions& options) {
  std::vector<Path> files;
  for (const Path& source : options.sources) {
    for (const Path& file : find_records_to_pack(source.string(), options.out)) files.push_back(file);
  }
  return files;
}

class RecordStore : public PictureStore {
 public:
  explicit RecordStore(const std::vector<Path>& files) : set_(files) {
    for (const Path& file : files) stamp_ += file_stamp(file) + " ";
  }

  PackList list() const {
    PackList list;
    Record record;
    for (std::size_t i = 0; i < set_.size(); ++i) {
      set_.read(i, record);
      PackItem item{i, record.labels, set_.place(i), i, PackSplit::train, std::string(text_of(record.objects))};
      leave_out_bad_boxes(item, list);
      list.items.push_back(std::move(item));
    }
    return list;
  }

  SourceBytes read(const PackItem& item) const override {
    Record record;
    set_.read(item.place, record);
    return {item.file, record.payload, record.owner};
  }
  std::string stamp(const PackItem&) const override { return stamp_; }

 private:
  RecordSet set_;
  std::string stamp_;
};

}  // namespace

// Ids are given anew: those of several files need not differ. The names of classes must not, since labels stay.
Pictures open_records(const PackOptions& options) {
  const std::vector<Path> files = all_files(options);
  std::vector<std::string> classes = class_names(files);
  auto store = std::make_unique<RecordStore>(files);
  PackList list = store->list();
  list.classes = std::move(classes);
  return {std::move(list), std::move(store), files};
}

}  // namespace dtrain::data
