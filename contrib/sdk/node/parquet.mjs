// A file of Parquet as hyparquet reads it: its columns with their types, and its rows, as a line of JSON.
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";

const file = await asyncBufferFromFile(process.argv[2]);
const metadata = await parquetMetadataAsync(file);
const columns = metadata.schema.slice(1).map((c) => `${c.name} ${c.logical_type?.type ?? c.type} ${c.repetition_type}`);
const rows = await parquetReadObjects({ file });
// A whole number of 64 bits is a BigInt, which JSON lacks.
console.log(JSON.stringify({ groups: metadata.row_groups.length, columns, rows }, (_, v) => (typeof v === "bigint" ? `${v}n` : v)));
