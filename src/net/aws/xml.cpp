#include <fmt/format.h>
#include <pugixml.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::net {
namespace {

// Deeper than any answer of a service, and harmless for the stack.
constexpr int kDeepest = 64;

Element element_of(const pugi::xml_node& node, const std::string& source, int depth) {
  if (depth > kDeepest) throw DataError(fmt::format("{}: XML that is nested too deep", source));
  Element element{.name = node.name(), .text = node.child_value()};
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() == pugi::node_element) element.children.push_back(element_of(child, source, depth + 1));
  }
  return element;
}

}  // namespace

const Element& Element::at(std::string_view child) const {
  static const Element kNone;
  for (const Element& one : children) {
    if (one.name == child) return one;
  }
  return kNone;
}

Element parse_xml(std::string_view text, const std::string& source) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed || !document.document_element()) {
    throw DataError(fmt::format("{}: no XML: {}", source, parsed ? "no element" : parsed.description()),
                    "check that the endpoint is the service's");
  }
  return element_of(document.document_element(), source, 0);
}

}  // namespace dtrain::net
