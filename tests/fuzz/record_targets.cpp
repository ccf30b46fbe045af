#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

void write_records(const Path& rec) {
  const data::Image image{3, 8, 8, std::vector<std::uint8_t>(192, 100)};
  data::RecordWriter writer(rec);
  const std::string payload = data::encode_image(image, data::Encoding::raw);
  for (std::uint64_t id = 0; id < 4; ++id) writer.add(id, static_cast<float>(id), bytes_of(payload));
  const float labels[] = {1, 2, 3};
  writer.add(4, labels, bytes_of(payload));
  // The container's own magic number within a payload: such a record is stored in parts.
  writer.add(5, 1, bytes_of(std::string("\x0a\x23\xd7\xce", 4) + payload));
  writer.finish();
}

void read_all(const Path& rec) {
  data::verify_records(rec);
  const data::RecordFile file(rec);
  for (std::size_t i = 0; i < file.size(); ++i) file.read(i);
}

}  // namespace

std::vector<Target> record_targets(const Path& folder) {
  const Path rec = folder / "good.rec", idx = folder / "good.idx";
  write_records(rec);
  const std::string records = read_file(rec), index = read_file(idx);
  return {
      {"records",
       {records},
       [=](const std::string& input) {
         write_quickly(folder / "alone.rec", input);
         read_all(folder / "alone.rec");
       }},
      {"records-with-index",
       {records},
       [=](const std::string& input) {
         write_quickly(folder / "both.idx", index);
         write_quickly(folder / "both.rec", input);
         read_all(folder / "both.rec");
       }},
      {"index",
       {index},
       [=](const std::string& input) {
         write_quickly(folder / "index.rec", records);
         write_quickly(folder / "index.idx", input);
         read_all(folder / "index.rec");
       }},
  };
}

}  // namespace dtrain::fuzz
