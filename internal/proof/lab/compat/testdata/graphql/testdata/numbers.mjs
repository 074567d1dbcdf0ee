// Reads a response with a key as an Int, an Int64 and a Float, and prints what a client has of it.
import { GraphQLInt } from 'graphql';

const { int, int64, float } = JSON.parse(process.argv[2]).data.doubles;
console.log(`${int} ${int64} ${float}`);
try {
  console.log(GraphQLInt.serialize(int));
} catch (error) {
  console.log(error.message);
}
