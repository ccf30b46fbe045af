#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/prices.hpp>

namespace dtrain::cluster {
namespace {

// The columns that decide, with the value that a row must have; an empty value: any.
struct Column {
  std::string_view name, value;
};
constexpr std::array<Column, 9> kColumns{{{"TermType", "OnDemand"},
                                          {"Unit", "Hrs"},
                                          {"PricePerUnit", ""},
                                          {"Currency", "USD"},
                                          {"Instance Type", ""},
                                          {"Tenancy", "Shared"},
                                          {"Operating System", "Linux"},
                                          {"CapacityStatus", "Used"},
                                          {"Pre Installed S/W", "NA"}}};
constexpr std::size_t kTerm = 0, kUnit = 1, kPrice = 2, kCurrency = 3, kType = 4;
// What a row of a disk's price holds: it has no type and no system.
constexpr std::string_view kDiskUsage = "EBS:VolumeUsage.gp3", kDiskUnit = "GB-Mo";
constexpr std::size_t kDateSize = 10;  // "2026-11-20"

}  // namespace

std::optional<double> PriceList::of(const std::string& type) const {
  const auto found = hourly.find(type);
  return found == hourly.end() ? std::nullopt : std::optional(found->second);
}

std::string PriceList::text() const {
  return fmt::format("on-demand prices of {}{}", region, published.empty() ? "" : ", published " + published);
}

void PriceListReader::read_heading(const std::vector<std::string>& names) {
  for (const Column& column : kColumns) {
    const auto found = std::ranges::find(names, column.name);
    if (found == names.end()) {
      throw DataError(fmt::format("{} has no column \"{}\", so it is no price list of EC2", source_, column.name));
    }
    columns_.push_back(static_cast<std::size_t>(found - names.begin()));
  }
}

const std::string& PriceListReader::field(const std::vector<std::string>& row, std::size_t column) const {
  static const std::string none;
  const std::size_t at = columns_[column];
  return at < row.size() ? row[at] : none;
}

void PriceListReader::read_disk(const std::vector<std::string>& row) {
  const auto dollars = parse_number(field(row, kPrice));
  const bool fits = field(row, kTerm) == kColumns[kTerm].value && field(row, kUnit) == kDiskUnit &&
                    field(row, kCurrency) == kColumns[kCurrency].value;
  if (fits && dollars && *dollars > 0) list_.disk_gigabyte_month = *dollars;
}

// Most rows are of other operating systems and terms: parsing those would take most of the time.
void PriceListReader::line(std::string_view text) {
  const bool is_disk = text.find(kDiskUsage) != text.npos;
  const bool may_matter =
      columns_.empty() || is_disk || (text.find("OnDemand") != text.npos && text.find("Linux") != text.npos);
  if (!may_matter) return;
  const std::vector<CsvRow> rows = parse_csv(text, source_);
  if (rows.empty()) return;
  const std::vector<std::string>& row = rows.front().fields;
  if (columns_.empty()) {
    if (row.size() == 2 && row[0] == "Publication Date") list_.published = row[1].substr(0, kDateSize);
    if (row.front() == "SKU") read_heading(row);
    return;
  }
  if (is_disk) return read_disk(row);
  for (std::size_t column = 0; column < kColumns.size(); ++column) {
    if (!kColumns[column].value.empty() && field(row, column) != kColumns[column].value) return;
  }
  const auto dollars = parse_number(field(row, kPrice));
  if (dollars && *dollars > 0 && !field(row, kType).empty()) list_.hourly[field(row, kType)] = *dollars;
}

PriceList PriceListReader::finish() {
  if (list_.hourly.empty()) {
    throw DataError(fmt::format("{} lists no price of a Linux instance on demand", source_),
                    "the file may have changed its form, or it is of another service");
  }
  return std::move(list_);
}

}  // namespace dtrain::cluster
