// The typed error of a failed skill, from whatever the SDK's client threw; undefined where none is told.
export function aapError(thrown) {
  const details = Array.isArray(thrown?.data) ? thrown.data : [thrown?.data];
  return details
    .map((detail) => (detail?.["@type"]?.endsWith("google.protobuf.Struct") ? detail.value : detail))
    .find((value) => value?.type === "aap.error" && typeof value.code === "string" && typeof value.retryable === "boolean");
}
