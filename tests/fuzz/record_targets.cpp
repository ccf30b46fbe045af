#include <dtrain/data/image.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include <cstring>

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

// A frame of the container around it, so that damage meets the header inside.
std::string framed(const std::string& payload) {
  std::string frame("\x0a\x23\xd7\xce", 4);
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(payload.size() >> shift & 255);
  return frame + payload + std::string((4 - payload.size() % 4) % 4, '\0');
}

// What is in the first frame.
std::string first_payload(const std::string& records) {
  std::uint32_t size = 0;
  std::memcpy(&size, records.data() + 4, sizeof(size));
  return records.substr(8, size);
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
  const std::string list = "0\t1.000000\ta/1.jpg\n7\t2\t0.5\tb/2 3.png\n";
  const std::string coco =
      R"({"images":[{"id":3,"file_name":"a.jpg","width":100,"height":50}],"annotations":[{"image_id":3,"category_id":18,)"
      R"("bbox":[10,5,20.5,10],"iscrowd":0}],"categories":[{"id":18,"name":"dog"}]})";
  return {
      {"list",
       {list},
       [=](const std::string& input) {
         write_quickly(folder / "list.lst", input);
         data::list_images(folder / "list.lst", folder);
       }},
      {"coco",
       {coco},
       [=](const std::string& input) {
         write_quickly(folder / "coco.json", input);
         data::list_images(folder / "coco.json", folder, data::CocoLabels::boxes);
       }},
      {"records",
       {records},
       [=](const std::string& input) {
         write_quickly(folder / "alone.rec", input);
         read_all(folder / "alone.rec");
       }},
      {"record-header",
       {first_payload(records)},
       [=](const std::string& input) {
         write_quickly(folder / "header.rec", framed(input));
         read_all(folder / "header.rec");
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
