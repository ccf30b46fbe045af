#include "list_file.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::data {

void require_name_for_list(const PackItem& item) {
  const std::size_t at = item.file.find_first_of("\t\n\r");
  if (at == item.file.npos) return;
  throw DataError(fmt::format("its name holds a {}, which the .lst file has between its {}",
                              item.file[at] == '\t' ? "tab" : "line break",
                              item.file[at] == '\t' ? "columns" : "pictures"));
}

void write_list(const Path& rec, std::span<const PackItem> items, const std::vector<std::size_t>& positions) {
  AtomicFile lst(Path(rec).replace_extension(".lst"));
  for (const std::size_t position : positions) {
    lst.write(fmt::format("{}\t", items[position].id));
    for (const float label : items[position].labels) lst.write(fmt::format("{:f}\t", label));
    lst.write(items[position].file + "\n");
  }
  lst.commit();
}

}  // namespace dtrain::data
