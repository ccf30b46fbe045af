// What an attention of ONNX consists of: products of queries and keys, their softmax, and its product with values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

#include "onnx_reader.hpp"

namespace dtrain::train {
namespace {

using Parts = std::vector<OnnxPart>;

OnnxLayout without_last_two(const OnnxLayout& layout) { return {layout.begin(), layout.end() - 2}; }

// Tokens are all pixels of a layer, under this name.
Parts tokens_as(OnnxAxis axis, std::int64_t count) { return {{axis, count, 1}}; }

}  // namespace

// The axis `axis` has the channels of a head, and another axis the heads.
OnnxHeads OnnxReader::heads_of(const OnnxNode& node, const OnnxValue& value, std::size_t axis) const {
  const Parts& parts = value.layout[axis];
  const bool is_head =
      parts.empty() || (parts.size() == 1 && parts[0].axis == OnnxAxis::channel && parts[0].stride == 1);
  require(is_head, node, "it multiplies values of other axes than the channels of a layer");
  OnnxHeads heads{.layer = value.layer, .first = value.first_channel, .size = parts.empty() ? 1 : parts[0].extent};
  for (std::size_t each = 0; each + 2 < value.layout.size(); ++each) {
    for (const OnnxPart& part : value.layout[each]) {
      if (part.axis != OnnxAxis::channel) continue;
      require(heads.count == 1 && part.stride == heads.size, node, "its heads are no neighbouring channels");
      heads.count = part.extent;
    }
  }
  return heads;
}

void OnnxReader::multiply_values(const OnnxNode& node) {
  const OnnxValue a = value_of(node, 0), b = value_of(node, 1);
  require(a.layout.size() == b.layout.size() && a.layout.size() >= 3 &&
              without_last_two(a.layout) == without_last_two(b.layout),
          node, "it multiplies values of other samples or heads");
  const std::size_t rows = a.layout.size() - 2, columns = rows + 1;
  if (a.form == OnnxForm::layer && b.form == OnnxForm::layer) {
    const Parts tokens = tokens_as(OnnxAxis::pixel, pixels_of(a));
    require(a.layout[rows] == tokens && b.layout[columns] == tokens && a.layout[columns] == b.layout[rows], node,
            "it is no product of the queries and keys of an attention");
    OnnxValue scores{.form = OnnxForm::scores,
                     .layout = a.layout,
                     .factor = a.factor * b.factor,
                     .queries = heads_of(node, a, columns),
                     .keys = heads_of(node, b, rows)};
    scores.layout[rows] = tokens_as(OnnxAxis::query, pixels_of(a));
    scores.layout[columns] = tokens_as(OnnxAxis::key, pixels_of(a));
    return give(node, std::move(scores));
  }
  const bool shares_first = a.form == OnnxForm::shares;
  const OnnxValue &shares = shares_first ? a : b, &values = shares_first ? b : a;
  require(shares.form == OnnxForm::shares && values.form == OnnxForm::layer && shares.factor == 1, node,
          "it is no product of the shares and values of an attention");
  const std::int64_t count = pixels_of(values);
  const Parts tokens = tokens_as(OnnxAxis::pixel, count), queries = tokens_as(OnnxAxis::query, count),
              keys = tokens_as(OnnxAxis::key, count);
  const std::size_t query_axis = shares_first ? rows : columns, key_axis = shares_first ? columns : rows;
  const std::size_t token_axis = query_axis, channel_axis = key_axis;  // of the values, on the other side
  require(
      shares.layout[query_axis] == queries && shares.layout[key_axis] == keys && values.layout[token_axis] == tokens,
      node, "it does not sum over the keys of an attention");
  require(values.factor == 1, node, "it scales the values of an attention");
  // What it gives has a query where the values have a key.
  attend(node, shares, heads_of(node, values, channel_axis), values.layout);
}

void OnnxReader::end_scores(const OnnxNode& node, OnnxValue scores) {
  const Extents axis = axes_of(node, {integer(node, "axis", -1)}, scores.layout.size());
  const Parts& parts = scores.layout[static_cast<std::size_t>(axis[0])];
  require(parts.size() == 1 && parts[0].axis == OnnxAxis::key, node, "its shares are not those of keys");
  const auto usual = static_cast<float>(1 / portable_sqrt(static_cast<double>(scores.queries.size)));
  require(std::fabs(scores.factor - usual) <= 1e-4f * usual, node,
          fmt::format("the scores of its attention are scaled by {}, not by {}", scores.factor, usual));
  scores.form = OnnxForm::shares;
  scores.factor = 1;
  give(node, std::move(scores));
}

// One layer has queries, keys and values behind each other, or each is a layer of its own.
void OnnxReader::attend(const OnnxNode& node, const OnnxValue& shares, const OnnxHeads& values, OnnxLayout layout) {
  const OnnxHeads &queries = shares.queries, &keys = shares.keys;
  const std::int64_t channels = values.count * values.size;
  const auto is_alike = [&](const OnnxHeads& other) {
    return other.count == values.count && other.size == values.size;
  };
  require(is_alike(queries) && is_alike(keys), node, "its queries, keys and values differ in their heads");
  const auto is_at = [&](const OnnxHeads& heads, std::int64_t first, std::int64_t of) {
    return heads.first == first && builder_.shape(heads.layer).c == of;
  };
  int in = values.layer;
  if (queries.layer == keys.layer && keys.layer == values.layer) {
    require(is_at(queries, 0, 3 * channels) && is_at(keys, channels, 3 * channels) &&
                is_at(values, 2 * channels, 3 * channels),
            node, "its queries, keys and values are not the channels of a layer in this order");
  } else {
    require(is_at(queries, 0, channels) && is_at(keys, 0, channels) && is_at(values, 0, channels), node,
            "its queries, keys and values are parts of several layers");
    OnnxNode together = node;
    together.name = node.outputs.front() + "_inputs";
    together.outputs = {together.name};
    in = add(together, nn::Concat{}, {queries.layer, keys.layer, values.layer});
  }
  const int layer = add(node, nn::Attention{.heads = small(node, values.count)}, {in});
  give(node, {.layer = layer, .layout = std::move(layout)});
}

}  // namespace dtrain::train
