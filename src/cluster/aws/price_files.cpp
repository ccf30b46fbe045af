#include <fmt/format.h>

#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/cluster/prices.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kSchema = "dtrain.prices/1";
constexpr net::AwsService kPricing{.name = "pricing", .variable = "PRICING"};
constexpr const char* kPricingRegion = "us-east-1";  // it has the files of all regions

Path price_file(const std::string& region) { return user_cache_folder() / "prices" / (region + ".json"); }

Json json_of(const PriceList& list) {
  Json hourly = Json::object();
  for (const auto& [type, dollars] : list.hourly) hourly[type] = dollars;
  Json stored =
      Json::object({{"schema", kSchema}, {"region", list.region}, {"published", list.published}, {"hourly", hourly}});
  if (list.disk_gigabyte_month) stored["disk_gigabyte_month"] = *list.disk_gigabyte_month;
  return stored;
}

PriceList list_of(const Json& stored) {
  if (stored.at("schema").as_string() != kSchema) throw DataError("another schema");
  PriceList list{.region = stored.at("region").as_string(), .published = stored.at("published").as_string()};
  for (const auto& [type, dollars] : stored.at("hourly").as_object()) list.hourly[type] = dollars.as_number();
  if (const Json* disk = stored.find("disk_gigabyte_month")) list.disk_gigabyte_month = disk->as_number();
  return list;
}

PriceList read_price_list(const Path& file, const std::string& region) {
  const MappedFile mapped(file);
  PriceListReader reader(region, file.filename().string());
  std::string_view rest = text_of(mapped.bytes());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    reader.line(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return reader.finish();
}

}  // namespace

PriceList known_prices(const std::string& region) {
  try {
    const Path file = price_file(region);
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error)) return list_of(Json::parse(read_file(file), file.string()));
  } catch (const Error&) {
    // A cache that cannot be read holds nothing.
  }
  return built_in_prices();
}

PriceList fetch_prices(const std::string& region, const net::AwsSettings& settings,
                       std::function<void(std::uint64_t done, std::uint64_t total)> progress) {
  if (region.starts_with("cn-")) {
    throw UsageError(fmt::format("the prices of region {} are not in US dollars", region),
                     "dtrain counts in US dollars: look at the prices in the AWS console");
  }
  const std::string endpoint = net::aws_endpoint(kPricing, kPricingRegion, settings).url;
  const Path store = price_file(region);
  make_folder(store.parent_path());
  const Path raw = store.parent_path() / fmt::format("{}.csv", region);
  std::error_code ignored;
  std::filesystem::remove(raw, ignored);
  net::Download download;
  download.url = fmt::format("{}/offers/v1.0/aws/AmazonEC2/current/{}/index.csv", endpoint, region);
  download.to = raw;
  download.progress = std::move(progress);
  net::download(download);
  PriceList list;
  try {
    list = read_price_list(raw, region);
  } catch (const DataError&) {
    std::filesystem::remove(raw, ignored);
    throw;
  }
  write_file_atomic(store, json_of(list).dump());
  std::filesystem::remove(raw, ignored);
  return list;
}

}  // namespace dtrain::cluster
